"""Answers that depend on what no text shows: draws are changed, until two puzzles read the same.

Two seeds with equal texts and different answers tell of a lottery, but there are few such seeds where a puzzle shows
anything random. Changing one draw of one seed finds what is drawn and not shown. What is shuffled before it is shown
takes several draws that make up for each other: episodes with poor random numbers, most of them 0, show the same texts
again and again.
"""

from __future__ import annotations

from collections.abc import Iterator

from spade_envs.sandbox.generator import NUDGES
from spade_envs.sandbox.types import Operation
from spade_envs.validation import policies
from spade_envs.validation.evidence import Evidence, SeedSurvey, Twins
from spade_envs.validation.occurrence import bare_solution
from spade_envs.validation.rollout import Policy, Rollout

_CHUNK = 16  # nudges in one round trip: eight draws
_MOST = 160
_POOR_CHUNK, _POOR_MOST = 48, 192
_PAIRS = 4  # of twins; play may tell two apart and not two others, which are closer to each other
RIGHT_MOVES = "right_moves"
"""Name of the player that makes the first seed's moves in a game of several."""


def find_twins(evidence: Evidence, forms: tuple[str, ...]) -> None:
    """Look for twins: the same text, other answers, neither of which earns anything with the other.

    If there are any, both are played by players that know nothing, so that :func:`~.probes_information.secrets` sees
    whether play tells them apart.

    Args:
        evidence: gets ``twins``, and in ``further`` the changed seed, if reset() fails on it.
        forms: names of forms in which guesses are played.
    """
    if not evidence.proven or evidence.look_alikes or any(entry.tools for entry in evidence.survey):
        return
    base = next(entry for entry in evidence.survey if entry.solution)
    seen: dict[str, list[SeedSurvey]] = {base.observation: [base]}
    several = 0  # pairs that accept each other's answers: there are several right ones
    for entry in _changed(evidence, base):
        alike = seen.setdefault(entry.observation, [])
        for other in alike:
            if _answer(entry) != _answer(other):
                if _accepted(evidence, other, entry):
                    several += 1
                else:
                    evidence.twins.append(Twins([other, entry], _played(evidence, other, entry, forms)))
                break
        if several >= _PAIRS or len(evidence.twins) >= _PAIRS:
            return
        if all(_answer(entry) != _answer(other) for other in alike):
            alike.append(entry)


def _answer(entry: SeedSurvey) -> str:
    return bare_solution(entry.solution or ())


def _changed(evidence: Evidence, base: SeedSurvey) -> Iterator[SeedSurvey]:
    """The seed with one draw changed, for one draw after the other, until none makes a difference; then poor ones."""
    session = evidence.runner.new_session()
    evidence.runner.run([Operation("make", session, {})])
    for first in range(0, _MOST, _CHUNK):
        entries = _surveyed(evidence, session, base.seed, range(first, first + _CHUNK))
        evidence.further += [entry for entry in entries if entry.errors]
        yield from (entry for entry in entries if not entry.errors and entry.solution)
        if all((entry.observation, entry.solution) == (base.observation, base.solution) for entry in entries):
            break
    for first in range(NUDGES, NUDGES + _POOR_MOST, _POOR_CHUNK):
        entries = _surveyed(evidence, session, base.seed, range(first, first + _POOR_CHUNK))
        # What such numbers break may be as rare as they are.
        yield from (entry for entry in entries if not entry.errors and entry.solution)


def _surveyed(evidence: Evidence, session: int, seed: int, nudges: range) -> list[SeedSurvey]:
    operations = [
        operation
        for nudge in nudges
        for operation in (
            Operation("nudge", session, nudge),
            Operation("reset", session, seed),
            Operation("solution", session),
        )
    ]
    outcomes = evidence.runner.run(operations)
    entries = []
    for place, nudge in enumerate(nudges):
        reset, told = outcomes[3 * place + 1 : 3 * place + 3]
        entry = SeedSurvey(seed, nudge=nudge)
        if reset.error is not None:
            entry.errors["reset"] = reset.error
        else:
            entry.observation, entry.solution = reset.value.observation, told.value
        entries.append(entry)
    return entries


def _accepted(evidence: Evidence, one: SeedSurvey, other: SeedSurvey) -> bool:
    """Whether the answer of either earns anything with the other: it is one of several right ones, or a bid."""
    pairs: list[tuple[Rollout, Policy]] = [
        (Rollout("twin_solution", entry.seed, nudge=entry.nudge), _moves(evidence, twin))
        for entry, twin in ((one, other), (other, one))
    ]
    evidence.runner.play(pairs, evidence.config.max_steps)
    return any(rollout.return_(evidence.config) > 0 for rollout, _ in pairs)


def _played(evidence: Evidence, base: SeedSurvey, twin: SeedSurvey, forms: tuple[str, ...]) -> list[Rollout]:
    observations = [entry.observation for entry in evidence.survey]
    players = policies.general_policies()
    players += policies.guessing_policies(forms, evidence.solutions, observations, hidden=True)
    pairs: list[tuple[Rollout, Policy]] = []
    for nudge in (base.nudge, twin.nudge):
        pairs += [(Rollout(player.name, base.seed, nudge=nudge), player.policy) for player in players]
        if len(base.solution or ()) > 1:  # the first moves of a game that is won in several
            pairs.append((Rollout(RIGHT_MOVES, base.seed, nudge=nudge), _moves(evidence, base)))
    evidence.runner.play(pairs, evidence.config.play_steps)
    return [rollout for rollout, _ in pairs]


def _moves(evidence: Evidence, entry: SeedSurvey) -> Policy:
    """What ``solution()`` said there, and nothing after it."""
    moves = [policies.wrap(move, evidence.solution_form or "raw") for move in entry.solution or ()]
    return lambda rollout: moves[len(rollout.turns)] if len(rollout.turns) < len(moves) else None

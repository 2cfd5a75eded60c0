"""Answers that depend on what no text shows: draws are changed, until two puzzles read the same.

Two seeds with equal texts and different answers tell of a lottery, but there are few such seeds where a puzzle shows
anything random. Changing one draw of one seed finds what is drawn and not shown. What is shuffled before it is shown
takes several draws that make up for each other: episodes with poor random numbers, most of them 0, show the same texts
again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from spade_envs.sandbox.types import RANDOM_WORDS, Nudge, Operation
from spade_envs.validation import policies
from spade_envs.validation.comparing import comparing_players
from spade_envs.validation.evidence import Evidence, SeedSurvey, Twins
from spade_envs.validation.occurrence import bare_solution
from spade_envs.validation.rollout import CollectionStopped, Policy, Rollout

_GENERATORS = 5  # of an episode, that are looked at
_CHUNK, _MOST_WORDS = 8, 80  # words that are changed in one round trip, and at all
_PARTS = 8  # into which they are divided in one round trip, to find the first without effect
_TAILS = 8
_POOR_GENERATORS, _POOR_CHUNK, _POOR_MOST = 4, 48, 192
_SHARE = 0.1  # of the time that validation may take, so that none is refused for the search
_CONSOLATION = 0.25  # pay that may be for any answer at all
_PAIRS = 4  # of twins; play may tell two apart and not two others, which are closer to each other
RIGHT_MOVES = "right_moves"
"""Name of the player that makes the first seed's moves in a game of several."""


def find_twins(evidence: Evidence, forms: tuple[str, ...]) -> None:
    """Look for twins: the same text, other answers, neither of which earns anything with the other.

    If there are any, both are played by players that know nothing, so that :func:`~.probes_secrets.secrets` sees
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
                    plays = _played(evidence, other, entry, forms)
                    evidence.twins.append(Twins([other, entry], plays, _rare(evidence, entry)))
                break
        if several >= _PAIRS or len(evidence.twins) >= _PAIRS:
            return
        if all(_answer(entry) != _answer(other) for other in alike):
            alike.append(entry)


def _rare(evidence: Evidence, twin: SeedSurvey) -> bool:
    """Whether a twin shows fewer different words and numbers than any seed does: a tie that hardly occurs."""
    shown = [len(set(entry.observation.split())) for entry in (twin, *evidence.survey)]
    return shown[0] < min(shown[1:])


def _answer(entry: SeedSurvey) -> str:
    return bare_solution(entry.solution or ())


def _changed(evidence: Evidence, base: SeedSurvey) -> Iterator[SeedSurvey]:
    """The seed with one draw changed, for one draw after the other; with all draws changed that show nowhere; poor."""
    session = evidence.runner.new_session()
    evidence.runner.run([Operation("make", session, {})])
    until = evidence.runner.operations + int(_SHARE * evidence.config.seconds / max(evidence.runner.pace, 1e-9))
    for generator in range(_GENERATORS):
        if evidence.runner.operations > until:
            return
        unused = _first_without_effect(evidence, session, base, generator, _same)
        for first in range(0, min(unused, _MOST_WORDS), _CHUNK):
            if evidence.runner.operations > until:
                return
            words = range(first, min(first + _CHUNK, unused))
            nudges = [Nudge("word", generator, word, variant) for word in words for variant in (0, 1)]
            entries = _surveyed(evidence, session, base.seed, nudges)
            evidence.further += [entry for entry in entries if entry.errors]
            yield from _answered(entries)
        if unused and evidence.runner.operations < until:
            unseen = _first_without_effect(evidence, session, base, generator, _looks_same)
            tails = [Nudge("tail", generator, unseen, variant) for variant in range(1, _TAILS + 1)]
            yield from _answered(_surveyed(evidence, session, base.seed, tails))
    texts: set[str] = set()
    for first in range(0, _POOR_MOST, _POOR_CHUNK):
        if evidence.runner.operations > until:
            return
        nudges = [Nudge("poor", _POOR_GENERATORS, 0, variant) for variant in range(first, first + _POOR_CHUNK)]
        try:
            entries = _surveyed(evidence, session, base.seed, nudges)
        except CollectionStopped:
            if evidence.runner.overdue:
                raise
            evidence.runner.trouble = None
            return
        # What such numbers break may be as rare as they are.
        yield from _answered(entries)
        before = len(texts)
        texts.update(entry.observation for entry in entries)
        if len(texts) - before in (0, len(entries)):  # all was seen before, or nothing comes again
            return


def _answered(entries: list[SeedSurvey]) -> Iterator[SeedSurvey]:
    return (entry for entry in entries if not entry.errors and entry.solution)


def _same(one: SeedSurvey, other: SeedSurvey) -> bool:
    return _looks_same(one, other) and one.solution == other.solution


def _looks_same(one: SeedSurvey, other: SeedSurvey) -> bool:
    return not one.errors and not other.errors and one.observation == other.observation


def _first_without_effect(
    evidence: Evidence, session: int, base: SeedSurvey, generator: int, same: Callable[[SeedSurvey, SeedSurvey], bool]
) -> int:
    """The first word of a generator from which on everything is the same whatever is drawn; 0 if it is not used."""

    low, high = 0, RANDOM_WORDS - 1  # where it is
    while low < high:
        step = max(1, (high - low) // _PARTS)
        words = list(range(low, high, step))
        nudges = [Nudge("tail", generator, word, 0) for word in words]
        entries = _surveyed(evidence, session, base.seed, nudges)
        without = next((place for place, entry in enumerate(entries) if same(entry, base)), len(words))
        low, high = (
            (words[without - 1] + 1 if without else low),
            (words[without] if without < len(words) else high),
        )
    return low


def _surveyed(evidence: Evidence, session: int, seed: int, nudges: list[Nudge]) -> list[SeedSurvey]:
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
    """Whether either answer earns more with the other than just any does: several are right, or it is a bid."""
    pairs: list[tuple[Rollout, Policy]] = [
        (Rollout("twin_solution", entry.seed, nudge=entry.nudge), _moves(evidence, twin))
        for entry, twin in ((one, other), (other, one))
    ]
    evidence.runner.play(pairs, evidence.config.max_steps)
    consolation = [
        rollout.return_(evidence.config)
        for name, (_, rollouts) in evidence.known_nothing.items()
        if name.startswith("foreign")
        for rollout in rollouts
    ]
    usual = median(consolation) if consolation else 0.0
    return any(rollout.return_(evidence.config) > max(0.0, min(usual, _CONSOLATION)) for rollout, _ in pairs)


def _played(evidence: Evidence, base: SeedSurvey, twin: SeedSurvey, forms: tuple[str, ...]) -> list[Rollout]:
    observations = [entry.observation for entry in evidence.survey]
    players = policies.general_policies()
    players += policies.guessing_policies(forms, evidence.solutions, observations, hidden=True)
    pairs: list[tuple[Rollout, Policy]] = []
    for nudge in (base.nudge, twin.nudge):
        pairs += [(Rollout(player.name, base.seed, nudge=nudge), player.policy) for player in players]
        comparing = comparing_players(forms[0], evidence.solutions)
        pairs += [(Rollout(name, base.seed, nudge=nudge), policy) for name, policy in comparing.items()]
        if len(base.solution or ()) > 1:  # the first moves of a game that is won in several
            pairs.append((Rollout(RIGHT_MOVES, base.seed, nudge=nudge), _moves(evidence, base)))
    evidence.runner.play(pairs, evidence.config.play_steps)
    return [rollout for rollout, _ in pairs]


def _moves(evidence: Evidence, entry: SeedSurvey) -> Policy:
    """What ``solution()`` said there, and nothing after it."""
    moves = [policies.wrap(move, evidence.solution_form or "raw") for move in entry.solution or ()]
    return lambda rollout: moves[len(rollout.turns)] if len(rollout.turns) < len(moves) else None

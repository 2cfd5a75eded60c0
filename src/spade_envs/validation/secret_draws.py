"""Answers that depend on what no text shows: random draws are changed one by one, and the puzzle reads the same.

Two seeds with equal texts and different answers tell of a lottery, but two such seeds are rare where a puzzle shows
anything random. Changing one draw of one seed makes such twins, if there can be any.
"""

from __future__ import annotations

from collections.abc import Iterator

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import Operation
from spade_envs.validation import policies
from spade_envs.validation.evidence import Evidence, SeedSurvey
from spade_envs.validation.occurrence import bare_solution
from spade_envs.validation.rollout import Policy, Rollout

_CHUNK = 16  # nudges in one round trip: eight draws
_MOST = 160
RIGHT_MOVES = "right_moves"
"""Name of the player that makes the first seed's moves in a game of several."""


def find_twin(evidence: Evidence, forms: tuple[str, ...]) -> None:
    """Look for a twin of the first seed: the same text, another answer, which the first one does not accept.

    If there is one, both are played by players that know nothing, so that :func:`~.probes_information.secrets` sees
    whether play tells them apart.

    Args:
        evidence: gets ``twins`` and ``twin_plays``.
        forms: names of forms in which guesses are played.
    """
    if not evidence.proven or evidence.look_alikes or any(entry.tools for entry in evidence.survey):
        return
    base = next(entry for entry in evidence.survey if entry.solution)
    for twin in _changed(evidence, base):
        if twin.observation == base.observation and bare_solution(twin.solution or ()) != bare_solution(
            base.solution or ()
        ):
            if not _accepted(evidence, base, twin):
                evidence.twins = [base, twin]
                _play(evidence, base, twin, forms)
            return  # one answer of several, or the twin that was looked for


def _changed(evidence: Evidence, base: SeedSurvey) -> Iterator[SeedSurvey]:
    """The seed with one draw changed, for one draw after the other, until no further one makes a difference."""
    session = evidence.runner.new_session()
    evidence.runner.run([Operation("make", session, {})])
    for first in range(0, _MOST, _CHUNK):
        nudges = range(first, first + _CHUNK)
        operations = [
            operation
            for nudge in nudges
            for operation in (
                Operation("nudge", session, nudge),
                Operation("reset", session, base.seed),
                Operation("solution", session),
            )
        ]
        outcomes = evidence.runner.run(operations)
        differs = False
        for place, nudge in enumerate(nudges):
            reset, told = outcomes[3 * place + 1 : 3 * place + 3]
            if reset.error is None and told.error is None and told.value:
                entry = SeedSurvey(base.seed, reset.value.observation, told.value, nudge=nudge)
                differs |= (entry.observation, entry.solution) != (base.observation, base.solution)
                yield entry
            else:
                differs = True
        if not differs:
            return


def _accepted(evidence: Evidence, base: SeedSurvey, twin: SeedSurvey) -> bool:
    """Whether the twin's answer wins the first seed too: then it is one of several right ones."""
    rollout = Rollout("twin_solution", base.seed)
    evidence.runner.play([(rollout, _moves(evidence, twin))], evidence.config.max_steps)
    return rollout.return_(evidence.config) >= WIN_RETURN


def _play(evidence: Evidence, base: SeedSurvey, twin: SeedSurvey, forms: tuple[str, ...]) -> None:
    observations = [entry.observation for entry in evidence.survey]
    players = policies.general_policies()
    players += policies.guessing_policies(forms, evidence.solutions, observations, hidden=True)
    pairs: list[tuple[Rollout, Policy]] = []
    for nudge in (None, twin.nudge):
        pairs += [(Rollout(player.name, base.seed, nudge=nudge), player.policy) for player in players]
        if len(base.solution or ()) > 1:  # the first moves of a game that is won in several
            pairs.append((Rollout(RIGHT_MOVES, base.seed, nudge=nudge), _moves(evidence, base)))
    evidence.runner.play(pairs, evidence.config.play_steps)
    evidence.twin_plays = [rollout for rollout, _ in pairs]


def _moves(evidence: Evidence, entry: SeedSurvey) -> Policy:
    """What ``solution()`` said there, and nothing after it."""
    moves = [policies.wrap(move, evidence.solution_form or "raw") for move in entry.solution or ()]
    return lambda rollout: moves[len(rollout.turns)] if len(rollout.turns) < len(moves) else None

"""Players that do the same on every episode that begins alike: where they are told different things, play reveals.

They know the answers, so what they earn says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spade_envs.validation.policies import wrap
from spade_envs.validation.rollout import Policy, Rollout

COMPARING = "compared"
"""How the names of their rollouts begin."""
_STEPS, _STARTS = 8, 60
_VERB = re.compile(
    r"(?:['\"`{]|\b(?:commands?|write|type|send|with|say|either):? ['\"`]?|[;,] )([a-z]{2,12}(?: to)?)(?=\W)",
    re.IGNORECASE,
)
_THING = re.compile(r"[A-Za-z]{3,}")
_MOST_VERBS = 16
_NUMBERS = ("1", "1 2 3")


def comparing_players(form: str, solutions: Mapping[int, Sequence[str]]) -> dict[str, Policy]:
    """Return players by name: one tries all solutions in one order, others what may be commands on what is named."""
    answers = [wrap(action, form) for action in sorted({move for moves in solutions.values() for move in moves})]
    players: dict[str, Policy] = {f"{COMPARING}_answers": _sequence(answers)}
    for start in range(0, _STARTS * _STEPS, _STEPS):
        players[f"{COMPARING}_commands_{start}"] = _commands(form, start)
    return players


def _sequence(actions: Sequence[str]) -> Policy:
    return lambda rollout: actions[len(rollout.turns)] if len(rollout.turns) < len(actions) else None


def _commands(form: str, start: int) -> Policy:
    def policy(rollout: Rollout) -> str | None:
        if len(rollout.turns) >= _STEPS:
            return None
        verbs = list(dict.fromkeys(verb.lower() for verb in _VERB.findall(rollout.first)))[:_MOST_VERBS] or ["ask"]
        things = [*_NUMBERS, *dict.fromkeys(_THING.findall(rollout.first)[::-1])]  # what is asked stands last
        place = start + len(rollout.turns)
        return wrap(f"{verbs[place % len(verbs)]} {things[place // len(verbs) % len(things)]}", form)

    return policy

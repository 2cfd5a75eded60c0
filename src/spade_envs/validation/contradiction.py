"""Programs of a pool that contradict each other: statement against checker, without a model.

Two kinds. *Answers*: the same statement and data (first observation), other answers. *Statements*: the same code but
for its texts, the same answers, another task in words. Candidates are looked up by fingerprint
(:mod:`.contradiction_index`) and then tried in the sandbox, since a puzzle may have several right answers and a story
may be told in other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox import Operation, Program, ProgramError, Sandbox
from spade_envs.validation import policies
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.contradiction_index import Candidate
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.rollout import CollectionStopped, Rollout, Runner, SolutionPolicy
from spade_envs.validation.shown import shorten

PROBE = "contradiction"
_WORD = re.compile(r"[a-z]+")
_TASKS = """
max maximum maximal maximise maximize largest greatest highest biggest longest tallest furthest most
min minimum minimal minimise minimize smallest lowest least shortest nearest fewest
sum add adding plus total altogether
difference subtract minus
product multiply multiplied times
divide divided quotient
remainder modulo
mean average
median
ascending increasing
descending decreasing
reverse reversed backwards
first
second
third
last final
even
odd
before
after
above
below
more greater over
fewer less under
left
right
up
down
north
south
east
west
union
intersection
any
all every each
not no never none without except excluding
only exactly
distinct unique different
inclusive
exclusive
sorted
"""
_TASK_OF = {word: line.split()[0] for line in _TASKS.strip().splitlines() for word in line.split()}
"""Words that turn a task into another one, each to the first of its line; others are taken for another story."""
_QUALIFIERS = frozenset(["not", "only", "distinct", "even", "odd", "reverse", "inclusive", "exclusive"])
"""Tasks that change a statement by being there at all; of others, one must take the place of another."""


def confirm(
    candidate: Candidate,
    source: str,
    other_source: str,
    *,
    sandbox: Sandbox,
    allow: Sequence[str] = (),
    config: ValidationConfig | None = None,
) -> Finding | None:
    """Run both programs of a candidate and return the contradiction as a warning, or None.

    Different answers are none if each program pays for the other's answer too, or does not pay for its own; other
    words are none if they tell the same task, as far as its keywords ("largest", "not") say.

    Raises:
        SandboxError: if the sandbox itself fails.
    """
    config = config or ValidationConfig()
    opened: list[Program] = []
    try:
        for text in (source, other_source):
            opened.append(sandbox.open(text, allow=allow))
        mine = _look(opened[0], candidate.seed)
        other = _look(opened[1], candidate.other_seed)
        if candidate.kind == "statements":
            return _statements(candidate, mine, other)
        pays = _wins(opened[0], candidate.seed, [mine[1], other[1]], config)
        other_pays = _wins(opened[1], candidate.other_seed, [mine[1], other[1]], config)
        return _answers(candidate, mine, other, pays, other_pays)
    except (ProgramError, CollectionStopped):
        return None  # a fault that the report tells
    finally:
        for program in opened:
            program.close()


def same_pair(finding: Finding, candidate: Candidate) -> bool:
    """Whether a finding of :func:`confirm` is that on ``candidate``."""
    told = (finding.evidence.get(name) for name in ("kind", "other", "seed", "other_seed"))
    return tuple(told) == (candidate.kind, candidate.other, candidate.seed, candidate.other_seed)


def _answers(
    candidate: Candidate,
    mine: tuple[str, list[str]],
    other: tuple[str, list[str]],
    pays: list[bool],
    other_pays: list[bool],
) -> Finding | None:
    if not (pays[0] and other_pays[1]) or (pays[1] and other_pays[0]):
        return None
    mine_answer, other_answer = shorten(" ".join(mine[1])), shorten(" ".join(other[1]))
    reason = (
        f"{candidate.other} shows the same statement and data and pays for another answer: {other_answer!r} there, "
        f"{mine_answer!r} here. One checker does not do what the statement asks: compare both with the words."
    )
    evidence = {
        **_evidence(candidate, mine, other),
        "pays_for_the_other": pays[1],
        "other_pays_for_this": other_pays[0],
    }
    return Finding(PROBE, Severity.WARN, reason, evidence)


def _statements(candidate: Candidate, mine: tuple[str, list[str]], other: tuple[str, list[str]]) -> Finding | None:
    here, there = (
        {_TASK_OF[word] for word in _WORD.findall(text.lower()) if word in _TASK_OF} for text in (mine[0], other[0])
    )
    words = sorted(here - there), sorted(there - here)
    changed = (words[0] and words[1]) or (here ^ there) & _QUALIFIERS
    if mine[1] != other[1] or not changed:
        return None
    reason = (
        f"{candidate.other} has the same code and answers under another statement (here: {', '.join(words[0]) or '-'}; "
        f"there: {', '.join(words[1]) or '-'}). At most one of the two statements says what the checker does."
    )
    return Finding(PROBE, Severity.WARN, reason, _evidence(candidate, mine, other))


def _evidence(candidate: Candidate, mine: tuple[str, list[str]], other: tuple[str, list[str]]) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "kind": candidate.kind,
        "other": candidate.other,
        "seed": candidate.seed,
        "other_seed": candidate.other_seed,
        "observation": shorten(mine[0], 300),
        "answer": shorten(" ".join(mine[1])),
        "other_answer": shorten(" ".join(other[1])),
    }
    if candidate.kind == "statements":
        evidence["other_observation"] = shorten(other[0], 300)
    return evidence


def _look(program: Program, seed: int) -> tuple[str, list[str]]:
    """First observation and solution of a seed."""
    number = program.new_session_number()
    operations = [Operation("make", number, {}), Operation("reset", number, seed), Operation("solution", number)]
    _, begun, solution = (outcome.unwrap() for outcome in program.run(operations))
    return begun.observation, list(solution or ())


def _wins(program: Program, seed: int, solutions: Sequence[Sequence[str]], config: ValidationConfig) -> list[bool]:
    """Whether each solution wins, in any form."""
    plays = [
        (Rollout(str(index), seed), SolutionPolicy(solution, partial(policies.wrap, form=form), False))
        for index, solution in enumerate(solutions)
        for form in policies.FORMS
    ]
    Runner(program, config.seconds).play(plays, config.max_steps)
    won = {rollout.policy for rollout, _ in plays if rollout.return_(config) >= WIN_RETURN}
    return [str(index) in won for index in range(len(solutions))]

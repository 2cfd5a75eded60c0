"""Answers whose wording nobody can know: fixed words that no text of the program shows and no answer wins without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from spade_envs.record import WIN_RETURN
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.occurrence import bare
from spade_envs.validation.policies import wrap
from spade_envs.validation.rollout import Policy, Rollout
from spade_envs.validation.shown import quoted, shorten

_WORD = re.compile(r"[^\W\d_]{3,}")
_STEM = 3  # letters that an ending may differ by: "swims" tells of "swimming"
_LEAST_ANSWERS = 3  # different ones, so that what they have in common is their form
_TRIED = 4  # seeds on which shorter wordings are played


def wording(evidence: Evidence) -> list[Finding]:
    """Play the answers without the words that nothing shows; a finding if none of them wins.

    A rule like "Time value: 5. Local time: 9" for an answer, of which the text says only that a time is wanted, is won
    by whoever reads the program, and by nobody else.
    """
    answers = {seed: bare(actions[0]) for seed, actions in evidence.solutions.items() if len(actions) == 1}
    if len(answers) < len(evidence.solutions) or len(set(answers.values())) < _LEAST_ANSWERS or not evidence.proven:
        return []
    words = _untold(evidence, list(answers.values()))
    if not words or any(entry.tools for entry in evidence.survey):
        return []
    played = list(answers)[:_TRIED]
    pairs: list[tuple[Rollout, Policy]] = []
    for seed in played:
        for number, text in enumerate(_shorter(answers[seed], words, list(answers.values()))):
            pairs.append((Rollout(f"shorter_{number}", seed), _once(_wrapped(evidence, seed, text))))
    evidence.runner.play(pairs, 1)
    won = {rollout.seed for rollout, _ in pairs if rollout.return_(evidence.config) >= WIN_RETURN}
    if 2 * len(won) > len(played):
        return []
    seed = played[0]
    reason = (
        f"the answer must be worded as {quoted(answers[seed])}, and nothing tells the player of "
        f"{', '.join(map(repr, words[:4]))}. Say in the first observation how the answer is written, or take the value "
        "alone."
    )
    severity = Severity.REFUSE if len(words) > 1 else Severity.WARN
    proof = {"seed": seed, "solution": shorten(answers[seed]), "words": words[:8]}
    return [Finding("wording", severity, reason, proof)]


def _untold(evidence: Evidence, answers: list[str]) -> list[str]:
    """The words that all answers have and no text does that the program shows before it is won."""
    common = set.intersection(*(set(_WORD.findall(answer.lower())) for answer in answers))
    if not common:
        return []
    texts = {entry.observation for entry in evidence.survey}
    for rollout in evidence.rollouts:
        texts.update(turn.observation for turn in rollout.turns if turn.reward <= 0)
    told = "\n".join(texts).lower()
    return sorted(word for word in common if word[: max(3, len(word) - _STEM)] not in told)


def _shorter(answer: str, words: list[str], answers: list[str]) -> Iterator[str]:
    """The answer without those words, without what all answers begin and end with, and what stands after a colon."""
    cut = re.sub("|".join(rf"(?i:(?<![^\W\d_]){re.escape(word)}(?![^\W\d_]))" for word in words), "", answer)
    head = _common(answers)
    tail = _common([other[::-1] for other in answers])
    while head and answer[head - 1 : head].isalnum():  # numbers may begin with the same digit
        head -= 1
    while tail and answer[-tail].isalnum():
        tail -= 1
    for text in (cut, answer[head : len(answer) - tail], answer.rpartition(":")[2], answer.rpartition("=")[2]):
        stripped = re.sub(r"\s+", " ", text).strip(" .,:;=-")
        if stripped and stripped != answer:
            yield stripped


def _common(texts: list[str]) -> int:
    """How many characters all texts begin with."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*texts)))


def _wrapped(evidence: Evidence, seed: int, text: str) -> str:
    action = evidence.solutions[seed][0]
    own = "boxed" if "\\boxed{" in action else "answer" if "<answer>" in action else evidence.solution_form
    return wrap(text, own or "raw")


def _once(action: str) -> Policy:
    return lambda rollout: None if rollout.turns else action

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
_LABEL = re.compile(r"([^\W\d_]{2,})\s*([:=(])")  # "Mean: ", "x = ", "sum("
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|[^\W\d_]+")
_MARKS = {"colon": ":", "equals sign": "=", "equal sign": "=", "yaml": ":", "query string": "=", "prolog": "("}
"""Marks after labels, by what tells of them."""
_NOTATION = re.compile(
    r"\b(?:spell|in words|translat|sql|html|xml|yaml|json|csv|latex|regular exp|regex|prolog|formula|derivative)",
    re.IGNORECASE,
)
"""What asks for a language that one knows, whose words need not be shown."""
_STEM = 3  # letters that an ending may differ by: "swims" tells of "swimming"
_WORDS = re.compile(r"[^\W\d_]{2,}(?: [^\W\d_]{2,})*")
_PHRASE = 3  # words in a row that make a phrase
_LEAST_ANSWERS = 3  # different ones, so that what they have in common is their form
_TRIED = 4  # seeds on which shorter wordings are played


def wording(evidence: Evidence) -> list[Finding]:
    """Play the answers without the words that nothing shows; a finding if none of them wins.

    An answer like "Time value: 5. Local time: 9", of which the text says only that two times are wanted, is found by
    whoever reads the program, and by nobody else.
    """
    answers = {seed: bare(actions[0]) for seed, actions in evidence.solutions.items() if len(actions) == 1}
    if len(answers) < len(evidence.solutions) or len(set(answers.values())) < _LEAST_ANSWERS or not evidence.proven:
        return []
    if any(entry.tools for entry in evidence.survey):
        return []
    words, phrases = _untold(evidence, list(answers.values()))
    if not words and not phrases:
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
        f"{', '.join(map(repr, [*phrases, *words][:4]))}. Say in the first observation how the answer is written, or "
        "take the values alone."
    )
    # Where the rest of the answer is words too, they may be what the task is about: a number in words, a message.
    strict = (phrases or len(words) > 1) and _values_are_told(evidence, answers)
    severity = Severity.REFUSE if strict else Severity.WARN
    proof = {"seed": seed, "solution": shorten(answers[seed]), "words": [*phrases, *words][:8]}
    return [Finding("wording", severity, reason, proof)]


def _untold(evidence: Evidence, answers: list[str]) -> tuple[list[str], list[str]]:
    """Words, labels and phrases that all answers have and no text that the program shows before it is won."""
    common = set.intersection(*(set(_WORD.findall(answer.lower())) for answer in answers))
    labels = set.intersection(*(set(_LABEL.findall(answer.lower())) for answer in answers))
    phrases = _phrases(answers)
    if not (common or labels or phrases):
        return [], []
    texts = {entry.observation for entry in evidence.survey}
    for rollout in evidence.rollouts:
        texts.update(turn.observation for turn in rollout.turns if turn.reward <= 0)
    told = "\n".join(sorted(texts)).lower()
    words = [word for word in common if word[: max(3, len(word) - _STEM)] not in told]
    shown = {f"{word}{mark}" for word, mark in _LABEL.findall(told)}
    marks = {mark for _, mark in _LABEL.findall("\n".join(entry.observation for entry in evidence.survey))}
    marks |= {mark for name, mark in _MARKS.items() if name in told}
    words += [
        word + mark
        for word, mark in labels
        if word + mark not in shown and word not in words and not (mark in marks and word in told)
    ]
    return sorted(words), [phrase for phrase in phrases if not _in_order(phrase, told)]


def _in_order(phrase: str, told: str) -> bool:
    """Whether some line has these words in this order, with others between them or not."""
    for line in told.split("\n"):
        tokens = iter(_TOKEN.findall(line))
        if all(word in tokens for word in phrase.split()):
            return True
    return False


def _values_are_told(evidence: Evidence, answers: dict[int, str]) -> bool:
    """Whether what differs between the answers is numbers, or words that the first observation shows."""
    constant = set.intersection(*(set(_TOKEN.findall(answer.lower())) for answer in answers.values()))
    for entry in evidence.survey:
        if _NOTATION.search(entry.observation):
            return False
        values = [token for token in _TOKEN.findall(answers[entry.seed].lower()) if token not in constant]
        if any(value.isalpha() and value not in entry.observation.lower() for value in values):
            return False
    return True


def _phrases(answers: list[str]) -> list[str]:
    """The longest stretches of words, at least three, that all answers contain."""
    first, *others = (_squashed(answer) for answer in answers)
    tokens, found, start = first.split(), list[str](), 0
    while start < len(tokens):
        end = start
        while end < len(tokens) and all(f" {' '.join(tokens[start : end + 1])} " in f" {other} " for other in others):
            end += 1
        # Numbers and letters that always come are computed: the first primes, a tag, a chemical formula.
        runs = _WORDS.findall(" ".join(tokens[start:end]))
        found += [run for run in runs if len(run.split()) >= _PHRASE]
        start = max(end, start + 1)
    return found


def _squashed(text: str) -> str:
    return " ".join(_TOKEN.findall(text.lower()))


def _shorter(answer: str, words: list[str], answers: list[str]) -> Iterator[str]:
    """The answer without those words, without what all answers have in common, and what stands after a mark."""
    names = [word.rstrip(":=(") for word in words] or ["\0"]
    cut = re.sub("|".join(rf"(?i:(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])\s*[:=]?)" for word in names), "", answer)
    head, tail = _common(answers), _common([other[::-1] for other in answers])
    while head and answer[head - 1 : head].isalnum():  # numbers may begin with the same digit
        head -= 1
    while tail and answer[-tail].isalnum():
        tail -= 1
    constant = set.intersection(*(set(_TOKEN.findall(other)) for other in answers))
    values = [token for token in _TOKEN.findall(answer) if token not in constant]
    unlabelled = _LABEL.sub("", answer)
    for text in (
        *(cut, unlabelled, answer[head : len(answer) - tail], answer.rpartition(":")[2], answer.rpartition("=")[2]),
        *(" ".join(values), ", ".join(values), ",".join(values)),
    ):
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

"""Probes of what the player is told: leaked answers, hints that are passwords."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from spade_envs.validation.disguise import disguises
from spade_envs.validation.evidence import Evidence, SeedSurvey
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.occurrence import Occurrence, bare_solution, occurrence
from spade_envs.validation.shown import quoted, shorten

_LONG = 40  # characters that no two texts share by chance
_PART = re.compile(r"-?\d+(?:\.\d+)?|[a-z]+")
_SEPARATORS = re.compile(r"[\s,;'\"\[\]()]+")
_LEAST_COPIED, _COPIED = 3, 0.7  # different answers, share of seeds


def leak(evidence: Evidence) -> list[Finding]:
    """The first observation does not give the answer away. What solution() says and step() never pays is no answer."""
    if not any(play.rewards and max(play.rewards) > 0 for plays in evidence.solution_plays.values() for play in plays):
        return []
    kinds: dict[Occurrence, list[SeedSurvey]] = defaultdict(list)
    solved = evidence.solved
    for entry in solved:
        kinds[occurrence(_answer(entry), entry.observation)].append(entry)
    if not solved:
        return []
    blatant = kinds["labelled"] + kinds["equal"]
    enough = evidence.config.leak_share * len(solved)
    if blatant and len(blatant) >= enough:
        return [_leaked(blatant, len(solved), Severity.REFUSE, "called the answer")]
    plain = kinds["lone"] + blatant  # what stands out on one seed may be called the answer on the next
    if len(plain) >= max(2, 0.8 * len(solved)):
        return [_leaked(plain, len(solved), Severity.REFUSE, "with nothing else like it")]
    if copied := _copied(solved) if _at_once(evidence) else []:
        return [_leaked(copied, len(solved), Severity.REFUSE, "and nothing else differs between seeds")]
    # Where the answer is the data in another order, it stands there now and then: two numbers, sorted already.
    ordered = all(_arranged(entry) for kind in ("none", "element") for entry in kinds[kind])
    lone = [] if ordered and len(kinds["lone"]) < len(solved) else kinds["lone"]
    for severity, found in ((Severity.WARN, blatant + lone), (Severity.INFO, kinds["span"])):
        if found and len(found) >= enough:
            return [_leaked(found, len(solved), severity, "word for word")]
    return []


def _at_once(evidence: Evidence) -> bool:
    """Whether what solution() says after reset wins; what answers the first of several questions may well be copied."""
    return all(
        len(plays[0].turns) <= len(evidence.solutions.get(seed, ())) for seed, plays in evidence.solution_plays.items()
    )


def _copied(solved: list[SeedSurvey]) -> list[SeedSurvey]:
    """The seeds, if the answer, with these or other separators, is all that differs: the puzzle is to copy it."""
    parts = {entry.seed: _PART.findall(_answer(entry).lower()) for entry in solved}
    entries = [entry for entry in solved if parts[entry.seed]]  # "[]" has none
    frames: dict[str, list[SeedSurvey]] = defaultdict(list)
    for entry in entries:
        text, answer = entry.observation.lower(), _answer(entry).lower()
        exact = rf"(?<!\w){re.escape(answer)}(?!\w)"
        # Other separators make no puzzle; other marks do: which operators stand between the numbers.
        words = _SEPARATORS.sub(" ", answer).split()
        apart = rf"(?<!\w){_SEPARATORS.pattern.join(map(re.escape, words))}(?!\w)"
        for pattern in (exact, apart):
            frame, found = re.subn(pattern, "\0", text)
            if found:
                frames[frame].append(entry)
                break
        else:
            return []
    # Now and then an answer is a word of the text besides.
    most = max(frames.values(), key=len, default=[])
    several = len({_answer(entry) for entry in most}) >= _LEAST_COPIED
    return most if several and len(most) >= _COPIED * len(solved) else []


def _arranged(entry: SeedSurvey) -> bool:
    """Whether all that the answer is made of stands in the first observation."""
    parts, shown = (Counter(_PART.findall(text.lower())) for text in (_answer(entry), entry.observation))
    return parts <= shown


def _answer(entry: SeedSurvey) -> str:
    return bare_solution(entry.solution or ())


def _leaked(entries: list[SeedSurvey], total: int, severity: Severity, how: str) -> Finding:
    entry = entries[0]
    answer = _answer(entry)
    reason = (
        f"the first observation contains the answer on {len(entries)} of {total} seeds, {how} "
        f"({shorten(answer, 60)!r}). Show the data and the question only."
    )
    proof = {
        "seed": entry.seed,
        "solution": shorten(answer),
        "observation": shorten(entry.observation, 300),
        "seeds": [other.seed for other in entries],
    }
    return Finding("leak", severity, reason, proof)


def hint(evidence: Evidence) -> list[Finding]:
    """Hints help and do not contain the answer."""
    findings: list[Finding] = []
    if evidence.given_hint is not None:
        findings += _judge_hints(evidence, {entry.seed: evidence.given_hint for entry in evidence.survey}, "the hint")
    if evidence.info.has_hint:
        own = {entry.seed: entry.hint for entry in evidence.survey if isinstance(entry.hint, str)}
        findings += _judge_hints(evidence, own, "hint()")
    return findings


def _judge_hints(evidence: Evidence, hints: dict[int, str], called: str) -> list[Finding]:
    if not hints:
        return []
    empty = [seed for seed, text in hints.items() if not text.strip()]
    if len(empty) == len(hints):
        reason = f"{called} is empty. Write one to three sentences: the key insight and the answer format."
        return [Finding("hint", Severity.INFO, reason, {"seeds": empty})]
    answers = {seed: bare_solution(actions) for seed, actions in evidence.solutions.items()}
    if useless := _useless(evidence, hints):
        return [
            Finding("hint", Severity.WARN, f"{called} {useless}", {"hint": shorten(next(iter(hints.values())), 300)})
        ]
    distinct = set(answers.values())
    kinds: dict[Occurrence, list[int]] = defaultdict(list)
    for seed, answer in answers.items():
        text = hints.get(seed, "")
        if len(distinct) > 1 and all(occurrence(other, text) != "none" for other in distinct):
            continue  # it lists the possible answers
        raw = " ".join(evidence.solutions[seed])  # tool calls lose their meaning with their wrappers
        kinds["lone" if len(raw) > _LONG and raw in text else occurrence(answer, text)].append(seed)
    for kind, words in (("equal", "is the answer"), ("labelled", "names the answer"), ("lone", "contains the answer")):
        seeds = kinds[kind]  # type: ignore[index]
        if seeds and len(seeds) * 2 >= len(answers):
            return [_given_away(evidence, called, words, seeds, hints, answers)]
    if len(distinct) > 1 and (found := _disguised(evidence, hints, answers)):
        return [_given_away(evidence, called, f"contains the answer {found[0]}", found[1], hints, answers)]
    contained = kinds["equal"] + kinds["labelled"] + kinds["lone"] + kinds["span"] + kinds["element"]
    varies = len(set(hints.values())) > 1
    if varies and len(contained) >= 0.9 * len(answers) and len(distinct) * 2 > len(answers):
        return [_given_away(evidence, called, "contains the answer", contained, hints, answers)]
    if not varies and len(distinct) == 1 and kinds["span"] + kinds["element"] and len(next(iter(distinct)).split()) > 1:
        return [_given_away(evidence, called, "contains the whole solution", contained, hints, answers)]
    return []


_STOCK_WORDS = """
a an the and or to of in on at for with as it is be do so all any this that you your yourself can will have has
think thinking carefully careful hard step steps by best try trying good luck read reread look take time check
checking work pay attention close closely remember focus concentrate calm stay keep going answer question problem
puzzle task game solve solution correct right give up not don t just make sure use brain logic every each very well
again before after first everything need needed one
"""
_STOCK = frozenset(_STOCK_WORDS.split())
"""Words that say nothing of any puzzle."""


def _useless(evidence: Evidence, hints: dict[int, str]) -> str:
    """Why no hint helps, empty if one may: stock phrases, or the first observation once more."""
    texts = {entry.seed: _squashed(entry.observation) for entry in evidence.survey}
    said = {seed: text for seed, text in hints.items() if text.strip()}
    if all(set(re.findall(r"[a-z]+", text.lower())) <= _STOCK and not re.search(r"\d", text) for text in said.values()):
        return "says nothing of the puzzle. Name the key insight or the strategy, and the answer format."
    if all(len(text) > _LONG and _squashed(text) in texts.get(seed, "") for seed, text in said.items()):
        return "only repeats the first observation. Name the key insight or the strategy, and the answer format."
    return ""


def _squashed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().lower()


def _disguised(evidence: Evidence, hints: dict[int, str], answers: dict[int, str]) -> tuple[str, list[int]] | None:
    """A disguise in which most hints hold the answer, and the seeds; what the first observation shows is data."""
    shown = {entry.seed: entry.observation for entry in evidence.survey}
    seeds: dict[str, list[int]] = defaultdict(list)
    for seed, answer in answers.items():
        known = {disguise.name for disguise in disguises(answer, shown[seed])}
        for disguise in disguises(answer, hints.get(seed, "")):
            if disguise.name not in known:
                seeds[disguise.name].append(seed)
    name = max(seeds, key=lambda name: len(seeds[name]), default="")
    return (name, seeds[name]) if name and len(seeds[name]) * 2 >= len(answers) and len(seeds[name]) > 1 else None


def _given_away(
    evidence: Evidence, called: str, words: str, seeds: list[int], hints: dict[int, str], answers: dict[int, str]
) -> Finding:
    seed = seeds[0]
    reason = (
        f"{called} {words} on {len(seeds)} of {len(answers)} seeds ({quoted(answers[seed])}). Say how to find it: the "
        "key insight or strategy and the answer format, without any value of this puzzle's answer."
    )
    proof = {"seed": seed, "hint": shorten(hints[seed], 300), "solution": shorten(answers[seed])}
    return Finding("hint", evidence.config.hint_answer, reason, proof)

"""Probes of what the player is told: secrets that nothing reveals, leaked answers, hints that are passwords."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.validation.comparing import COMPARING
from spade_envs.validation.disguise import disguises
from spade_envs.validation.evidence import Evidence, SeedSurvey
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.occurrence import Occurrence, bare, bare_solution, occurrence
from spade_envs.validation.rollout import Rollout
from spade_envs.validation.secret_draws import RIGHT_MOVES
from spade_envs.validation.shown import quoted, shorten

_LIGHTEST = (Severity.INFO, Severity.WARN, Severity.REFUSE)
_LONG = 40  # characters that no two texts share by chance
_PART = re.compile(r"-?\d+(?:\.\d+)?|[a-z]+")
_SEPARATORS = re.compile(r"[\s,;'\"\[\]()]+")
_LEAST_COPIED, _COPIED = 3, 0.7  # different answers, share of seeds
_COMMON_WORDS = """
yes no true false left right up down north south east west even odd heads tails red black wait stop go
"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that one tries without being shown them; numbers and letters are such, too."""
_TRYING = ("foreign", "repeat", COMPARING)
_BLIND = 3
"""A program that says so few different things to whatever is tried, the same on all seeds, reveals nothing."""


def secrets(evidence: Evidence) -> list[Finding]:
    """Equal first observations with different solutions: fine if play reveals the difference, else a lottery."""
    if group := evidence.look_alikes:
        seeds = {entry.seed for entry in group}
        played = [rollout for rollout in (*evidence.rollouts, *evidence.compared) if rollout.seed in seeds]
        return [_secret(evidence, group, played, f"{len(group)} seeds show the same text and want different answers")]
    same = "the text stays the same when random numbers are drawn otherwise, and the answer does not"
    found = [
        _rare_tie(finding) if twins.rare and finding.severity is Severity.REFUSE else finding
        for twins in evidence.twins
        for finding in [_secret(evidence, twins.entries, twins.plays, same)]
    ]
    return sorted(found, key=lambda finding: _LIGHTEST.index(finding.severity))[:1]


def _secret(evidence: Evidence, group: list[SeedSurvey], rollouts: list[Rollout], same: str) -> Finding:
    proof: dict[str, Any] = {
        "seeds": sorted({entry.seed for entry in group}),
        "observation": shorten(group[0].observation, 300),
        "solutions": [shorten(bare_solution(entry.solution or ())) for entry in group][:4],
    }
    played = [rollout for rollout in rollouts if rollout.error is None]
    advice = (
        "Put all that is needed to work out the answer into the observation, or let actions reveal it, as solution() "
        "does then."
    )
    if played and all(len(rollout.turns) <= 1 for rollout in played):
        return Finding(
            "secrets", Severity.REFUSE, f"a secret: {same}, and the only turn ends the episode. {advice}", proof
        )
    # Seeds also part where one is played by its own solution and the other is not: that says no more than "right",
    # unless the moves are calls of tools, whose results say more.
    tools = bool(evidence.survey[0].tools)
    tried = [rollout for rollout in played if tools or not rollout.policy.startswith("solution_")]
    if _revealed(tried) or _progress(tried):
        return Finding("secrets", Severity.INFO, "the first observation hides the answer; play reveals it.", proof)
    if _can_be_tried(evidence, played):
        reason = "the first observation hides the answer and no feedback was seen; trying all answers would find it."
        return Finding("secrets", Severity.WARN, reason, proof)
    if tools or len(_answers_given(tried)) > _BLIND or _weighs(tried):
        reason = f"{same}, and nothing was seen to tell more. {advice}"
        return Finding("secrets", Severity.WARN, reason, proof)
    return Finding("secrets", Severity.REFUSE, f"a secret: {same}, and no action revealed more. {advice}", proof)


def _rare_tie(finding: Finding) -> Finding:
    reason = (
        "where random numbers happen to be equal, the same text wants different answers. Draw again until they differ, "
        "or say in the text how ties are broken."
    )
    return Finding("secrets", Severity.WARN, reason, finding.evidence)


def _can_be_tried(evidence: Evidence, played: list[Rollout]) -> bool:
    """Whether there are few answers, or few moves, that one can think of, and a wrong one does not end the episode."""
    answers = {tuple(entry.solution or ()) for entry in evidence.survey}
    single = all(len(answer) == 1 for answer in answers)
    options = {bare(move).lower() for answer in answers for move in answer}
    shown = "\n".join({entry.observation for entry in evidence.survey}).lower()
    if any(option not in shown and not _common(option) for option in options):
        return False  # nobody tries what stands nowhere
    lost = [rollout for rollout in played if rollout.return_(evidence.config) < WIN_RETURN]
    tries = max((len(rollout.turns) for rollout in played if rollout.policy.startswith(_TRYING)), default=0)
    # All that there is stands in each text, or the seeds so far have shown it.
    closed = all(option in entry.observation.lower() for option in options for entry in evidence.survey)
    closed |= not single or len(options) * 2 <= len(evidence.survey)
    if all(option.isdecimal() for option in options):
        closed |= max(map(int, options), default=0) <= tries
    too_soon = any(rollout.terminated and len(rollout.turns) < len(options) for rollout in lost)
    return closed and len(options) <= tries and not too_soon


def _common(option: str) -> bool:
    return all(word in _COMMON or word.isdigit() or len(word) == 1 for word in option.split())


def _answers_given(rollouts: list[Rollout]) -> set[str]:
    """What the program says to actions before the end, but for numbers and, where it repeats the action, for that."""
    given: set[str] = set()
    unechoed: set[str] = set()
    for rollout in rollouts:
        for action, result in zip(rollout.actions, rollout.turns, strict=False):
            if not (result.terminated or result.truncated):
                said = re.sub(r"\d+", "", result.observation).strip().lower()
                given.add(said)
                unechoed.add(_unechoed(action, result.observation))
    # Taking the action out makes one answer many where the action is a word of it: "That is not the library."
    return min(given, unechoed, key=len)


def _revealed(rollouts: list[Rollout]) -> bool:
    """Whether some sequence of actions is answered differently on two seeds before the episode ends."""
    seen: dict[tuple[str, ...], str] = {}
    for rollout in rollouts:
        for turn, result in enumerate(rollout.turns, start=1):
            if result.terminated or result.truncated:
                break
            if seen.setdefault(tuple(rollout.actions[:turn]), result.observation) != result.observation:
                return True
    return False


def _weighs(rollouts: list[Rollout]) -> bool:
    """Whether wrong answers of the right form are answered differently in the same turn: "far too little"."""
    said: dict[int, set[str]] = defaultdict(set)
    for rollout in rollouts:
        if rollout.policy.startswith("foreign"):
            for turn, (action, result) in enumerate(zip(rollout.actions, rollout.turns, strict=False)):
                if not (result.terminated or result.truncated):
                    said[turn].add(_unechoed(action, result.observation))
    return any(len(replies) > 1 for replies in said.values())


def _unechoed(action: str, text: str) -> str:
    """What the program says but for numbers and, where it repeats the action, for that."""
    echo = rf"(?<!\w){re.escape(bare(action))}(?!\w)|\d+" if bare(action) else r"\d+"
    return re.sub(echo, "", text).strip().lower()


def _progress(rollouts: list[Rollout]) -> bool:
    """Whether right moves are answered, before the end, as nothing else is that was tried."""
    said: dict[bool, set[str]] = {True: set(), False: set()}
    for rollout in rollouts:
        for result in rollout.turns:
            if not (result.terminated or result.truncated):
                said[rollout.policy == RIGHT_MOVES].add(result.observation)
    return bool(said[True] - said[False])


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

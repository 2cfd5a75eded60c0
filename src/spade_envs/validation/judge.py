"""A model reads statement and source and says whether the checker does what the statement asks.

Everything that the model says is a finding to look at, never a proof; what it fails to say is counted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spade_envs.models.base import ChatModel, Message, ModelError, Sampling
from spade_envs.sandbox import Operation, Program, ProgramError, Sandbox
from spade_envs.validation import policies
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.finding import Finding, Report, Severity
from spade_envs.validation.rollout import CollectionStopped, Policy, Rollout, Runner, SolutionPolicy
from spade_envs.validation.shown import shorten

PROBE = "judge"
SAMPLING = Sampling(max_tokens=768, temperature=0.0)

_TEMPLATE = Path(__file__).parent / "judge.jinja"
_MAX_SOURCE, _MAX_OBSERVATION, _MAX_TURN = 24_000, 2_000, 300  # characters
_MAX_TURNS = 6
_AGREE = re.compile(r"[\"']?agree[\"']?\s*[:=]\s*[\"']?(true|false|yes|no)\b", re.IGNORECASE)
_LINE = re.compile(r"[\"']?line[\"']?\s*[:=]\s*[\"']?(\d{1,6})", re.IGNORECASE)
_REASON = re.compile(r"[\"']?reason[\"']?\s*[:=]\s*[\"']?([^\n]{1,500})", re.IGNORECASE)
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model said. ``agree`` is None when it said nothing that can be read; ``error`` then says why."""

    agree: bool | None
    line: int = 0  # of the source, from 1; 0: none
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Play:
    """One episode as the model sees it: what was shown, and (action, reward, whether it ended, answer) by turn."""

    seed: int
    observation: str
    turns: tuple[dict[str, Any], ...] = ()


class Judge:
    """Asks one model about programs.

    Args:
        model: any :class:`~spade_envs.models.base.ChatModel`.
        severity: of a disagreement.
        seeds: the episodes that are shown, two or three.
        batch: programs asked about at once.
        sampling: of the replies.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        severity: Severity = Severity.WARN,
        seeds: Sequence[int] = (0, 1, 2),
        batch: int = 8,
        sampling: Sampling = SAMPLING,
    ) -> None:
        if batch < 1 or not seeds:
            raise ValueError(f"batch and seeds must not be empty; got batch={batch}, seeds={list(seeds)}")
        self.model, self.severity, self.seeds, self.batch, self.sampling = (
            model,
            severity,
            tuple(seeds),
            batch,
            sampling,
        )
        self.asked = self.disagreed = self.failed = 0
        self.first_error = ""
        self._gone = ""  # why the model cannot be asked any more

    @property
    def key(self) -> str:
        """A short word that changes with whatever a judgement depends on, apart from the program."""
        values = [self.model.name, self.severity, self.seeds, dataclasses.astuple(self.sampling), _TEMPLATE.read_text()]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]

    def judge(self, sources: Sequence[str], *, sandbox: Sandbox, allow: Sequence[str] = ()) -> list[Judgement]:
        """Return one judgement for each source; a failing model or program gives one without a verdict.

        Raises:
            SandboxError: if the sandbox itself fails.
        """
        conversations = [prompt(source, episodes(source, self.seeds, sandbox, allow)) for source in sources]
        self.asked += len(sources)
        found: list[Judgement] = []
        if not self._gone:
            try:
                replies = self.model.complete(conversations, self.sampling)
                found = [
                    Judgement(None, error=reply.error) if reply.error else read_judgement(reply.text, source)
                    for reply, source in zip(replies, sources, strict=True)
                ]
            except ModelError as error:
                self._gone = str(error) or "the model cannot be used"
        found = found or [Judgement(None, error=self._gone)] * len(sources)
        self.disagreed += sum(judgement.agree is False for judgement in found)
        self.failed += sum(judgement.agree is None for judgement in found)
        self.first_error = self.first_error or next((entry.error for entry in found if entry.error), "")
        return found

    def finding(self, judgement: Judgement, source: str) -> Finding | None:
        """Return a disagreement as a finding that names the line, None for any other judgement."""
        if judgement.agree is not False:
            return None
        lines = source.split("\n")
        quoted = f"line {judgement.line} `{shorten(lines[judgement.line - 1].strip(), 80)}`: " if judgement.line else ""
        said = judgement.reason or "the model gave no reason"
        reason = f"{self.model.name} says that statement and checker disagree, {quoted}{said}"
        return Finding(PROBE, self.severity, reason, {"model": self.model.name, "line": judgement.line, "reason": said})

    def reviewed(
        self,
        results: Iterable[tuple[tuple[str, str, Report | None], Report | None]],
        *,
        sandbox: Sandbox,
        allow: Sequence[str] = (),
    ) -> Iterator[tuple[tuple[str, str, Report | None], Report | None]]:
        """Add findings to new reports on admitted programs, ``batch`` at a time; all else passes in its place.

        Args:
            results: ((label, source, report read from a log), new report), one of the reports being None.
            sandbox: where episodes are played.
            allow: opt-in modules.
        """
        waiting: list[tuple[tuple[str, str, Report | None], Report | None]] = []
        for result in results:
            waiting.append(result)
            if len(waiting) >= self.batch:
                yield from self._review(waiting, sandbox, allow)
                waiting = []
        yield from self._review(waiting, sandbox, allow)

    def _review(
        self,
        results: Sequence[tuple[tuple[str, str, Report | None], Report | None]],
        sandbox: Sandbox,
        allow: Sequence[str],
    ) -> Iterator[tuple[tuple[str, str, Report | None], Report | None]]:
        asked = [place for place, (_, report) in enumerate(results) if report is not None and report.admitted]
        judged = self.judge([results[place][0][1] for place in asked], sandbox=sandbox, allow=allow) if asked else []
        by_place = dict(zip(asked, judged, strict=True))
        for place, (item, report) in enumerate(results):
            found = self.finding(by_place[place], item[1]) if place in by_place else None
            if found is not None and report is not None:
                report = dataclasses.replace(report, findings=(*report.findings, found))
            yield item, report

    def summary(self) -> str:
        """One line: how many were asked about, disagreed, and got no verdict."""
        words = f"judge {self.model.name}: {self.asked} asked, {self.disagreed} disagree"
        if self.failed:
            words += f", {self.failed} without a verdict ({shorten(self.first_error, 160)})"
        return words


def episodes(source: str, seeds: Sequence[int], sandbox: Sandbox, allow: Sequence[str] = ()) -> list[Play]:
    """Play ``solution()`` on each seed in the form that wins most; what cannot be played is left out.

    Raises:
        SandboxError: if the sandbox itself fails.
    """
    config = ValidationConfig()
    try:
        program = sandbox.open(source, allow=allow)
    except ProgramError:
        return []
    try:
        return _episodes(program, seeds, config)
    except (ProgramError, CollectionStopped):
        return []
    finally:
        program.close()


def _episodes(program: Program, seeds: Sequence[int], config: ValidationConfig) -> list[Play]:
    runner, pairs = Runner(program, config.seconds), []
    for seed in seeds:
        session = runner.new_session()
        names = ["make", "reset", *(["solution"] if program.info.has_solution else [])]
        arguments = {"make": {}, "reset": seed}
        *_, last = runner.run([Operation(name, session, arguments.get(name)) for name in names])
        solution = last.value if program.info.has_solution and last.error is None else None
        for form in policies.FORMS:
            policy: Policy = SolutionPolicy(solution or (), _former(form), False)
            pairs.append((Rollout(form, seed), policy))
    runner.play(pairs, config.max_steps)
    plays = []
    for seed in seeds:
        tried = [rollout for rollout, _ in pairs if rollout.seed == seed and (rollout.first or rollout.turns)]
        if tried:
            plays.append(_play(max(tried, key=lambda rollout: rollout.return_(config))))
    return plays


def _former(form: str) -> Any:
    return lambda text: policies.wrap(text, form)


def _play(rollout: Rollout) -> Play:
    turns = [
        {
            "action": json.dumps(shorten(action, _MAX_TURN)),
            "reward": f"{turn.reward:g}",
            "ended": turn.terminated,
            "observation": json.dumps(shorten(turn.observation, _MAX_TURN)),
        }
        for action, turn in zip(rollout.actions, rollout.turns, strict=False)
    ]
    return Play(rollout.seed, shorten(rollout.first, _MAX_OBSERVATION), tuple(turns[-_MAX_TURNS:]))


@cache
def _template() -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(keep_trailing_newline=False).from_string(_TEMPLATE.read_text(encoding="utf-8"))


def prompt(source: str, plays: Sequence[Play]) -> list[Message]:
    """Return the conversation that asks about one program."""
    lines = source.split("\n")
    numbered = "\n".join(f"{number:4}  {line}" for number, line in enumerate(lines, start=1))
    if len(numbered) > _MAX_SOURCE:
        numbered = numbered[:_MAX_SOURCE].rpartition("\n")[0] + f"\n[cut: {len(lines)} lines in all]"
    safe = numbered.encode("utf-8", "replace").decode("utf-8")
    return [{"role": "user", "content": _template().render(numbered=safe, plays=plays)}]


def read_judgement(text: str, source: str) -> Judgement:
    """Read a reply: the last JSON object with "agree", else the words of a broken one.

    Lines that the source does not have become 0. Nothing readable gives a judgement with ``agree`` None.
    """
    found: dict[str, Any] | None = None
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found = value if isinstance(value, dict) and "agree" in value else found
        place = text.find("{", end)
    if found is None:
        agrees, lines, reasons = _AGREE.findall(text), _LINE.findall(text), _REASON.findall(text)
        if not agrees:
            return Judgement(
                None, error=f"expected a JSON object with agree, line and reason; got {shorten(text, 80)!r}"
            )
        found = {"agree": agrees[-1], "line": lines[-1] if lines else 0, "reason": reasons[-1] if reasons else ""}
    agree = found["agree"]
    if isinstance(agree, str):
        agree = _WORDS.get(agree.strip().lower())
    if not isinstance(agree, bool):
        return Judgement(None, error=f'expected true or false under "agree"; got {shorten(repr(found["agree"]), 60)}')
    told = found.get("reason")
    reason = " ".join(told.split()).strip("\"'},") if isinstance(told, str) else ""
    return Judgement(agree, 0 if agree else _line(found.get("line"), source), shorten(reason, 400))


def _line(value: Any, source: str) -> int:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        digits = re.search(r"\d{1,6}", value)
        value = digits[0] if digits else 0
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return number if 1 <= number <= source.count("\n") + 1 else 0

"""Hints by a model: one to three sentences of strategy, checked for giving away answers, values or the code."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.designer.hint_checks import Seen, identifier_complaint, length_complaint, look, value_complaint
from spade_envs.models.base import ChatModel, Message, Sampling
from spade_envs.record import EnvironmentRecord
from spade_envs.source_text.thoughts import without_thoughts
from spade_envs.validation import Severity, ValidationConfig, validate

if TYPE_CHECKING:
    from spade_envs.designer.prompts import PromptSet
    from spade_envs.sandbox import Sandbox

logger = logging.getLogger(__name__)

_TRIES = 2
_SEEDS = 3
_REMEMBERED = 256  # programs that were looked at
_LABEL = re.compile(r"\A(?:\*\*)?hint(?:\*\*)?\s*:\s*(?:\*\*)?\s*", re.IGNORECASE)


class HintWriter:
    """Asks for the hint of a record and judges the reply."""

    def __init__(self, prompts: PromptSet, sandbox: Sandbox, config: ValidationConfig | None = None) -> None:
        """Take the prompt set's templates; ``config`` says on which seeds a hint is tried."""
        self.prompts, self.sandbox = prompts, sandbox
        self.config = config or ValidationConfig()
        self._seen: dict[str, Seen] = {}

    def messages(self, record: EnvironmentRecord, complaint: str = "") -> list[Message]:
        """The conversation that asks for a hint; ``complaint`` is what was wrong with the one before."""
        return self.prompts.hint_messages(record, complaint)

    def complaint(self, record: EnvironmentRecord, hint: str) -> str:
        """Say what is wrong with ``hint``; "" if nothing is."""
        if complaint := length_complaint(hint):
            return complaint
        seen = self._look(record)
        if complaint := value_complaint(hint, seen) or identifier_complaint(hint, record.source, seen.shown):
            return complaint
        report = validate(record.source, sandbox=self.sandbox, hint=hint, allow=record.allow, config=self.config)
        before = {finding["reason"] for finding in record.report.get("findings", ())}  # on the program's own hint()
        for finding in report.findings:
            if finding.probe == "hint" and finding.severity is not Severity.INFO and finding.reason not in before:
                return finding.reason
        return ""

    def _look(self, record: EnvironmentRecord) -> Seen:
        if record.id not in self._seen:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[record.id] = look(record, self.sandbox, self.config.seeds[:_SEEDS])
        return self._seen[record.id]

    def judged(self, record: EnvironmentRecord, text: str) -> EnvironmentRecord:
        """Return ``record`` with the hint in ``text``; without one, and with the reason in ``meta``, if it is bad."""
        hint = clean_hint(text)
        if complaint := self.complaint(record, hint):
            return _without(record, complaint)
        return dataclasses.replace(record, hint=hint)

    def write(
        self, model: ChatModel, records: Sequence[EnvironmentRecord], sampling: Sampling
    ) -> tuple[list[EnvironmentRecord], int]:
        """Return the records with hints, and the tokens spent; a hint that is refused is asked for once more.

        A record that gets none is returned without (``hint`` is empty) and the reason in ``meta["hint_refused"]``.
        """
        done: dict[int, EnvironmentRecord] = {}
        complaints, tokens = dict.fromkeys(range(len(records)), ""), 0
        for attempt in range(_TRIES):
            open_ = sorted(complaints)
            if not open_:
                break
            completions = model.complete(
                [self.messages(records[index], complaints[index]) for index in open_],
                dataclasses.replace(sampling, seed=sampling.seed + attempt),
            )
            for index, completion in zip(open_, completions, strict=True):
                tokens += completion.completion_tokens
                if completion.error:
                    complaints[index] = f"model: {completion.error}"
                    continue
                hint = clean_hint(completion.text)
                complaints[index] = self.complaint(records[index], hint)
                if not complaints[index]:
                    done[index] = dataclasses.replace(records[index], hint=hint)
                    del complaints[index]
        for index, complaint in complaints.items():
            logger.info("%s: no hint: %s", records[index].env_id, complaint)
            done[index] = _without(records[index], complaint)
        return [done[index] for index in range(len(records))], tokens


def clean_hint(text: str) -> str:
    """Take the hint out of a reply: no reasoning, fences, quotes or label."""
    text = without_thoughts(text)
    lines = [line.strip() for line in text.strip().splitlines() if not line.strip().startswith(("```", "~~~"))]
    hint = _LABEL.sub("", " ".join(line for line in lines if line))
    if len(hint) > 1 and hint[0] == hint[-1] and hint[0] in "\"'":
        hint = hint[1:-1].strip()
    return hint


def _without(record: EnvironmentRecord, complaint: str) -> EnvironmentRecord:
    return dataclasses.replace(record, hint="", meta={**record.meta, "hint_refused": complaint})

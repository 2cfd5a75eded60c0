"""Hints by a model: one to three sentences of strategy, checked for giving the answer away."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.models.base import ChatModel, Message, Sampling
from spade_envs.record import EnvironmentRecord
from spade_envs.validation import Severity, ValidationConfig, validate

if TYPE_CHECKING:
    from spade_envs.designer.prompts import PromptSet
    from spade_envs.sandbox import Sandbox

logger = logging.getLogger(__name__)

MAX_HINT = 800
"""Characters of a hint; one to three sentences are far below."""
_TRIES = 2
_LABEL = re.compile(r"\A(?:\*\*)?hint(?:\*\*)?\s*:\s*(?:\*\*)?\s*", re.IGNORECASE)


class HintWriter:
    """Asks for the hint of a record and judges the reply."""

    def __init__(self, prompts: PromptSet, sandbox: Sandbox, config: ValidationConfig | None = None) -> None:
        """Take the prompt set's templates; ``config`` says on which seeds a hint is tried."""
        self.prompts, self.sandbox = prompts, sandbox
        self.config = config or ValidationConfig()

    def messages(self, record: EnvironmentRecord, complaint: str = "") -> list[Message]:
        """The conversation that asks for a hint; ``complaint`` is what was wrong with the one before."""
        return self.prompts.hint_messages(record, complaint)

    def complaint(self, record: EnvironmentRecord, hint: str) -> str:
        """Say what is wrong with ``hint``; "" if nothing is."""
        if not hint:
            return "it was empty"
        if len(hint) > MAX_HINT:
            return f"it had {len(hint)} characters; one to three sentences are asked for"
        report = validate(record.source, sandbox=self.sandbox, hint=hint, allow=record.allow, config=self.config)
        before = {finding["reason"] for finding in record.report.get("findings", ())}  # on the program's own hint()
        for finding in report.findings:
            if finding.probe == "hint" and finding.severity is not Severity.INFO and finding.reason not in before:
                return finding.reason
        return ""

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
    before, found, after = text.partition("</think>")
    if found:
        text = after
    elif before.lstrip().startswith("<think>"):
        return ""
    lines = [line.strip() for line in text.strip().splitlines() if not line.strip().startswith(("```", "~~~"))]
    hint = _LABEL.sub("", " ".join(line for line in lines if line))
    if len(hint) > 1 and hint[0] == hint[-1] and hint[0] in "\"'":
        hint = hint[1:-1].strip()
    return hint


def _without(record: EnvironmentRecord, complaint: str) -> EnvironmentRecord:
    return dataclasses.replace(record, hint="", meta={**record.meta, "hint_refused": complaint})

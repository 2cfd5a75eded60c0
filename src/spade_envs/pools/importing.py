"""Bringing a pool into a memory: each program is checked, validated in the sandbox, and stored as it is admitted."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from spade_envs.memory import Memory
from spade_envs.memory.transfer import Stored, restore
from spade_envs.pools.candidate import Candidate
from spade_envs.pools.contradictions import Contradictions
from spade_envs.pools.published import Pool
from spade_envs.record import EnvironmentRecord, source_id
from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.types import IsolationLevel
from spade_envs.source_text import extract_program, mend_source
from spade_envs.source_text.extract import parse
from spade_envs.validation import Finding, Report, Severity, ValidationConfig, validate
from spade_envs.validation.contradiction import PROBE
from spade_envs.validation.lanes import Task, validate_in_order
from spade_envs.validation.report_log import ReportLog

Status = Literal["admitted", "refused", "duplicate", "present"]
_CLASS = re.compile(r"^class\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one program."""

    label: str
    status: Status  # "present": an earlier, interrupted import stored it
    report: Report
    id: str = ""  # of its record; for a duplicate, of the record that it repeats
    reason: str = ""  # why it was not admitted

    @property
    def cause(self) -> str:
        """The probe that refused it, for counting; "" if none did."""
        return self.report.refusals[0].probe if self.report.refusals else ""


@dataclass(frozen=True, slots=True)
class _Item:
    candidate: Candidate
    source: str = ""
    mends: tuple[str, ...] = ()
    known: Report | None = None  # from the log of an interrupted import
    outcome: Outcome | None = None  # settled without running it


def import_pool(
    pool: Pool,
    memory: Memory,
    *,
    jobs: int = 1,
    isolation: IsolationLevel = "full",
    allow: Sequence[str] = (),
    config: ValidationConfig | None = None,
    log: ReportLog | None = None,
    licence: str = "",
    generator: str = "",
    similar: float | None = None,
) -> Iterator[Outcome]:
    """Yield what becomes of each program, in the order of the pool; the admitted are stored one by one.

    A program is taken from its Markdown fence and mended as a model's reply is; an entry of our own export is taken as
    it is and keeps hint, parents, report, statistics and plays. There the report is kept if ours says the same but for
    its timings, else ours replaces it. Statistics of a duplicate are not added to those of the record it repeats.

    Args:
        pool: what :func:`open_pool` returned.
        memory: where records go.
        jobs: processes that validate at once.
        isolation: the least that the sandboxes must offer.
        allow: opt-in modules, such as "numpy".
        config: how strictly programs are judged.
        log: where reports are kept; with those of an interrupted import, programs are not run again.
        licence: of programs for which the pool gives none.
        generator: of programs for which the pool gives none; "import:<pool>" by default.
        similar: overlap (0 to 1) from which a program counts as a duplicate of another one; by default only the very
            same program is one.

    Raises:
        PoolError: if the pool cannot be read. SandboxError: if the sandbox fails. What was admitted stays stored.
    """
    importer = _Importer(pool, memory, isolation, tuple(allow), config or ValidationConfig(), log)
    importer.licence, importer.generator = licence, generator or f"import:{pool.name}"
    importer.similar = similar
    config = importer.config
    with importer.resources:
        results = validate_in_order(importer.work(), jobs=jobs, isolation=isolation, allow=allow, config=config)
        importer.resources.callback(results.close)
        for item, report in results:
            yield importer.settle(item, report)


class _Importer:
    """The state of one import."""

    licence = generator = ""
    similar: float | None = None

    def __init__(
        self,
        pool: Pool,
        memory: Memory,
        isolation: IsolationLevel,
        allow: tuple[str, ...],
        config: ValidationConfig,
        log: ReportLog | None,
    ) -> None:
        self.pool, self.memory, self.allow, self.config, self.log = pool, memory, allow, config, log
        self.resources = ExitStack()
        # For what the lanes do not do: contradictions, programs whose hint is bad. Starts when first needed.
        self.sandbox = self.resources.enter_context(Sandbox(minimum_isolation=isolation))
        self.contradictions = Contradictions(memory)
        self.seen: dict[str, str] = {}  # id → label, of this pool

    def work(self) -> Iterator[tuple[_Item, Task | None]]:
        """Yield every program, with what is to be validated where that is needed."""
        for candidate in self.pool:
            item = self._examined(candidate)
            hint = candidate.stored.record.hint if candidate.stored else candidate.fields.get("hint", "")
            settled = item.outcome is not None or item.known is not None
            yield item, None if settled else (item.source, hint or None)

    def settle(self, item: _Item, report: Report | None) -> Outcome:
        """Decide, store, log."""
        outcome = item.outcome
        if outcome is None:
            report = report or item.known
            assert report is not None
            if self.log is not None:  # before it is stored: a kill in between costs nothing
                self.log.write(item.candidate.label, item.source, report)
            outcome = self._admit(item, report)
            if outcome.cause in ("name", "similar"):  # found after the validator had admitted it
                self._log_unrun(outcome)
        else:
            self._log_unrun(outcome)
        return outcome

    def _log_unrun(self, outcome: Outcome) -> None:
        """Log without a source: on resuming, such a line must not stand for a program that is to be run."""
        if self.log is not None and outcome.status != "present":
            self.log.write(outcome.label, "", outcome.report, status=outcome.status, of=outcome.id)

    def _examined(self, candidate: Candidate) -> _Item:
        label = candidate.label
        if candidate.problem:
            return _Item(candidate, outcome=_refused(label, "unreadable", candidate.problem))
        if not candidate.intact:
            said, found = candidate.expected_sha256[:16], candidate.actual_sha256[:16]
            reason = f"the pool says SHA-256 {said}…, it is {found}…: changed or damaged; get the pool again"
            return _Item(candidate, outcome=_refused(label, "sha256", reason))
        source, mends = (candidate.code, ()) if candidate.stored else program_of(candidate.code)
        if not source:
            return _Item(candidate, outcome=_refused(label, "no_code", "no program in it (no class, fenced or bare)"))
        identity = source_id(source)
        if identity in self.seen:
            reason = f"the same program as {self.seen[identity]}"
            return _Item(candidate, outcome=_duplicate(label, identity, reason))
        self.seen[identity] = label
        known = None if self.log is None else self.log.find(source)
        if identity in self.memory:
            if known is not None and known.admitted:
                return _Item(candidate, outcome=Outcome(label, "present", known, identity))
            reason = f"the same program as {self.memory.get(identity).env_id} of the memory"
            return _Item(candidate, outcome=_duplicate(label, identity, reason))
        if self.similar is not None and (outcome := self._resembling(label, source)):
            return _Item(candidate, outcome=outcome)
        return _Item(candidate, source, mends, known)

    def _resembling(self, label: str, source: str) -> Outcome | None:
        assert self.similar is not None
        found = self.memory.duplicate_of(source, min_overlap=self.similar)
        if found is None:
            return None
        return _duplicate(label, found.id, f"repeats {found.id[:16]} (overlap {found.overlap:.2f})", "similar")

    def _admit(self, item: _Item, report: Report) -> Outcome:
        label, hint_refused = item.candidate.label, ""
        if not report.admitted and all(finding.probe == "hint" for finding in report.refusals):
            bare = validate(item.source, sandbox=self.sandbox, allow=self.allow, config=self.config)
            if bare.admitted:  # the hint that came with it is bad, not the program
                report, hint_refused = bare, report.refusals[0].reason
        if not report.admitted:
            first = report.refusals[0]
            return Outcome(label, "refused", report, source_id(item.source), f"{first.probe}: {first.reason}")
        if self.similar is not None and (repeated := self._resembling(label, item.source)):
            return repeated  # of one that was under way when this one was first looked at
        found = self.contradictions.find(
            item.source, report, sandbox=self.sandbox, allow=self.allow, config=self.config
        )
        report = dataclasses.replace(report, findings=(*report.findings, *found))
        try:
            stored = self._stored(item, report, hint_refused)
        except ValueError as error:
            return _refused(label, "name", str(error))
        restore(self.memory, [stored])
        self.contradictions.add(stored.record)
        return Outcome(label, "admitted", report, stored.record.id)

    def _stored(self, item: _Item, report: Report, hint_refused: str) -> Stored:
        told, candidate = item.candidate.stored, item.candidate
        if told is not None:
            record = told.record
            changes: dict[str, Any] = {
                "name": report.name,
                "proven": report.proven,
                "report": _kept_report(record.report, report),
                "licence": record.licence or self.licence,
                "generator": record.generator or self.generator,
                "allow": record.allow if set(record.allow) <= set(self.allow) else _used(self.allow, item.source),
            }
            if hint_refused:
                changes |= {"hint": "", "meta": {**record.meta, "hint_refused": hint_refused}}
            return dataclasses.replace(told, record=dataclasses.replace(record, **changes))
        fields = dict(candidate.fields)
        meta = dict(fields.pop("meta", {}))
        if candidate.expected_sha256:
            meta["pool"] = {**meta.get("pool", {}), "sha256": candidate.expected_sha256}
        if item.mends:
            meta["mends"] = list(item.mends)
        if hint_refused:
            meta["hint_refused"], fields["hint"] = hint_refused, ""
        fields["licence"] = fields.get("licence") or self.licence
        fields["generator"] = fields.get("generator") or self.generator
        record = EnvironmentRecord.create(
            item.source,
            report.name,
            **fields,
            allow=_used(self.allow, item.source),
            proven=report.proven,
            report=report.to_dict(),
            meta=meta,
            created_at=time.time(),
        )
        return Stored(record, run=f"import-{self.pool.name}")


def program_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the program in a pool's file or reply and what was mended; "" if there is none.

    A text that is valid Python with a class in it is not cut, whatever fences it prints.
    """
    if _CLASS.search(text) and parse(text) is not None:
        return mend_source(text)
    extracted = extract_program(text)
    return extracted.source, extracted.mends


def _used(allow: Sequence[str], source: str) -> tuple[str, ...]:
    """The opt-in modules that a source names."""
    return tuple(module for module in allow if re.search(rf"\b{re.escape(module)}\b", source))


def _kept_report(told: Mapping[str, Any], ours: Report) -> dict[str, Any]:
    """The exported report if ours says the same but for timings and contradictions with other records, else ours."""
    new = json.loads(json.dumps(ours.to_dict()))
    if _substance(told) != _substance(new):
        return dict(new)
    known = {(finding["probe"], finding["reason"]) for finding in told["findings"]}
    fresh = [one for one in new["findings"] if one["probe"] == PROBE and (PROBE, one["reason"]) not in known]
    return {**told, "findings": [*told["findings"], *fresh]}


def _substance(report: Mapping[str, Any]) -> object:
    try:
        measures = {key: value for key, value in report["measures"].items() if key != "milliseconds"}
        findings = [finding for finding in report["findings"] if finding["probe"] != PROBE]
        return report["name"], report["proven"], findings, measures
    except (KeyError, TypeError, AttributeError):
        return None


def _refused(label: str, probe: str, reason: str) -> Outcome:
    report = Report("", (Finding(probe, Severity.REFUSE, reason),))
    return Outcome(label, "refused", report, "", f"{probe}: {reason}")


def _duplicate(label: str, identity: str, reason: str, probe: str = "duplicate") -> Outcome:
    return Outcome(label, "duplicate", Report("", (Finding(probe, Severity.REFUSE, reason),)), identity, reason)

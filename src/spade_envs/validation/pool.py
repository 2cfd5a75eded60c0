"""Validating a pool: thousands of programs as a stream, several at once, going on where a killed run was."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.types import IsolationLevel
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.contradiction import PROBE, confirm, same_pair
from spade_envs.validation.contradiction_index import ContradictionIndex
from spade_envs.validation.finding import Finding, Report
from spade_envs.validation.judge import Judge
from spade_envs.validation.lanes import Task, validate_in_order
from spade_envs.validation.report_log import ReportLog


@dataclass(frozen=True, slots=True)
class Verdict:
    """The report on one program of a pool, contradictions with programs before it among its findings."""

    label: str
    source: str
    report: Report
    resumed: bool = False  # read from the log, not run again

    @property
    def contradictions(self) -> list[Finding]:
        """The contradictions with programs before it."""
        return [finding for finding in self.report.findings if finding.probe == PROBE]


def validate_pool(
    sources: Iterable[tuple[str, str]],
    *,
    find: Callable[[str], str],
    jobs: int = 1,
    isolation: IsolationLevel = "full",
    allow: Sequence[str] = (),
    config: ValidationConfig | None = None,
    log: ReportLog | None = None,
    judge: Judge | None = None,
) -> Iterator[Verdict]:
    """Validate (label, source) pairs in their order, holding few of them at a time.

    Args:
        sources: the programs.
        find: returns the source under a label again, for the few that are to be compared with another one.
        jobs: processes that validate at once, each with a sandbox of its own.
        isolation: the least that the sandboxes must offer.
        allow: opt-in modules.
        config: seeds, bounds and thresholds.
        log: where reports are kept as they come; programs that have one there are not run again.
        judge: a model that reads the admitted programs, if any.

    Raises:
        SandboxError: if the sandbox itself fails. Reports up to then are in the log.
    """
    config = config or ValidationConfig()
    index = ContradictionIndex()

    def work() -> Iterator[tuple[tuple[str, str, Report | None], Task | None]]:
        for label, source in sources:
            known = None if log is None else log.find(source)
            yield (label, source, known), None if known else (source, None)

    with ExitStack() as stack:
        # Started when two programs are to be compared; most pools never need it.
        sandbox = stack.enter_context(Sandbox(minimum_isolation=isolation))
        results = validate_in_order(work(), jobs=jobs, isolation=isolation, allow=allow, config=config)
        stack.callback(results.close)
        for (label, source, known), new in judge.reviewed(results, sandbox=sandbox, allow=allow) if judge else results:
            report = known or new
            assert report is not None
            findings = [finding for finding in report.findings if finding.probe != PROBE]
            tried = [finding for finding in known.findings if finding.probe == PROBE] if known else []
            for candidate in index.candidates(label, report.measures) if report.admitted else ():
                found = next((finding for finding in tried if same_pair(finding, candidate)), None) or confirm(
                    candidate, source, find(candidate.other), sandbox=sandbox, allow=allow, config=config
                )
                findings += [found] if found else []
            report = dataclasses.replace(report, findings=tuple(findings))
            if report.admitted:
                index.add(label, report.measures)
            if log is not None:
                log.write(label, source, report)
            yield Verdict(label, source, report, resumed=known is not None)

"""Reports as text for people: one line, or a table of reasons."""

from __future__ import annotations

from spade_envs.validation.finding import Report, Severity


def one_line(report: Report, label: str = "") -> str:
    """The verdict on one line: label, admitted or refused, and the reasons.

    Example: ``maze.py: REFUSED MazeEnv [solution] solution() does not win on 2 of 8 seeds: …``
    """
    head = f"{label}: " if label else ""
    if not report.admitted:
        first = report.refusals[0]
        more = f" (+{len(report.refusals) - 1} more: {', '.join(f.probe for f in report.refusals[1:])})"
        reason = " ".join(first.reason.split())
        return f"{head}REFUSED {report.name or '?'} [{first.probe}] {reason}{more if len(report.refusals) > 1 else ''}"
    warnings = [finding for finding in report.findings if finding.severity is Severity.WARN]
    proof = "proven" if report.proven else "unproven"
    tail = f"; warnings: {', '.join(finding.probe for finding in warnings)}" if warnings else ""
    return f"{head}admitted {report.name} ({proof}, {report.seconds * 1000:.0f} ms){tail}"


def table(report: Report) -> str:
    """All findings, one to a line: severity, probe, reason, in columns."""
    rows = [(str(finding.severity), finding.probe, " ".join(finding.reason.split())) for finding in report.findings]
    if not rows:
        return "no findings"
    wide = max(len(row[1]) for row in rows)
    return "\n".join(f"{severity:6}  {probe:{wide}}  {reason}" for severity, probe, reason in rows)


def refusal_text(report: Report) -> str:
    """The reasons for refusal as a list for a designer who is to mend the program; empty if it was admitted."""
    return "\n".join(f"- [{finding.probe}] {finding.reason}" for finding in report.refusals)

"""Tool environments with one planted fault each, and sound ones; a fault's file says what must be said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Report, Severity, validate

DATA = Path(__file__).parent.parent / "data" / "validation_tools"
FAULTY = sorted((DATA / "faulty").glob("*.py"))
SOUND = sorted((DATA / "sound").glob("*.py"))
GUARDED = {"declined_request.py"}
"""Sound, with a condition that only guards: it holds at reset, which is worth a warning."""


def _header(source: str) -> dict[str, str]:
    lines = [line[2:] for line in source.splitlines() if line.startswith("# ")]
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def _explained(report: Report) -> str:
    return "\n".join(f"{finding.severity} {finding.probe}: {finding.reason}" for finding in report.findings)


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_planted_fault_is_found(path: Path, sandbox: Sandbox) -> None:
    source = path.read_text()
    header = _header(source)
    report = validate(source, sandbox=sandbox)
    found = [
        finding for finding in report.findings if finding.probe == header["probe"] and header["says"] in finding.reason
    ]
    assert found, _explained(report)
    assert found[0].severity == header["verdict"], _explained(report)
    assert report.admitted is (header["verdict"] != "refuse"), _explained(report)
    for finding in found:
        assert finding.evidence
        assert len(finding.reason) > 60, "a reason says what is wrong and what to write instead"


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_sound_environment_is_admitted(path: Path, sandbox: Sandbox) -> None:
    source = path.read_text()
    report = validate(source, sandbox=sandbox)
    assert report.admitted, _explained(report)
    assert report.proven is (_header(source)["proven"] == "true"), _explained(report)
    warned = {finding.probe for finding in report.findings if finding.severity is Severity.WARN}
    assert warned == ({"criteria"} if path.name in GUARDED else set()), _explained(report)


def test_the_same_program_gives_the_same_findings(sandbox: Sandbox) -> None:
    source = (DATA / "faulty" / "spelling_differs.py").read_text()
    first, second = (validate(source, sandbox=sandbox).findings for _ in range(2))
    assert first == second

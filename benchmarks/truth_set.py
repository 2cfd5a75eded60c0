"""Confusion matrix of the validator over programs whose verdict is known.

    python benchmarks/truth_set.py [--json]

The programs are in ``tests/data/validation``: one planted fault of one kind each, and sound ones. Exit code 1 if a
fault that must be refused is admitted, or a sound program is refused. Faults that running cannot find (``needs``) are
counted apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "validation"))

from known_verdicts import Sample, truth_set

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Report, Severity, validate

COLUMNS = ("refuse", "warn", "admitted")


def judge_all() -> list[tuple[Sample, Report]]:
    """Validate every program."""
    with Sandbox() as sandbox:
        return [(sample, validate(sample.source, sandbox=sandbox)) for sample in truth_set()]


def matrix(judged: list[tuple[Sample, Report]]) -> dict[str, Counter[str]]:
    """Count results by planted kind and the verdict that must result."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for sample, report in judged:
        row = sample.group if not sample.needs else f"{sample.group} [needs {sample.needs.partition(':')[0]}]"
        rows[row][sample.result(report)] += 1
        rows[row]["right"] += sample.right(report)
        rows[row]["must refuse"] += sample.verdict == "refuse"
    return rows


def by_probe(judged: list[tuple[Sample, Report]]) -> dict[str, tuple[int, int, int]]:
    """For each probe: true refusals, refusals of another fault or of a sound program, faults it alone missed.

    A refusal is true if the planted fault is one that the probe may find. A fault that several probes may find is
    missed by all of them only if none did.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for sample, report in judged:
        refusing = {finding.probe for finding in report.refusals}
        for probe in refusing:
            counts[probe][0 if probe in sample.probes else 1] += 1
        if sample.verdict == "refuse" and not sample.needs and not refusing & sample.probes:
            for probe in sample.probes:
                counts[probe][2] += 1
    return {probe: (a, b, c) for probe, (a, b, c) in sorted(counts.items())}


def main() -> int:
    """Print the matrix, precision and recall by probe, and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results of every program as JSON")
    as_json = parser.parse_args().json
    judged = judge_all()
    if as_json:
        rows = [
            {
                "name": s.name,
                "kind": s.kind,
                "verdict": s.verdict,
                "needs": s.needs,
                "result": s.result(r),
                "right": s.right(r),
            }
            for s, r in judged
        ]
        print(json.dumps(rows, indent=1))
    rows_by_kind = matrix(judged)
    wide = max(map(len, rows_by_kind))
    out = sys.stderr if as_json else sys.stdout
    print(f"{'planted':{wide}}  {'refused':>8}{'warned':>8}{'admitted':>9}{'as meant':>10}", file=out)
    for kind in sorted(rows_by_kind, key=lambda kind: (kind == "sound", "[" in kind, kind)):
        row = rows_by_kind[kind]
        total = sum(row[column] for column in COLUMNS)
        print(f"{kind:{wide}}  {row['refuse']:8}{row['warn']:8}{row['admitted']:9}{row['right']:6} / {total}", file=out)
    print(f"\n{'probe':14}{'precision':>10}{'recall':>8}{'true':>6}{'beside':>8}{'missed':>8}", file=out)
    for probe, (true, beside, missed) in by_probe(judged).items():
        precision = true / (true + beside) if true + beside else float("nan")
        recall = true / (true + missed) if true + missed else float("nan")
        print(f"{probe:14}{precision:10.2f}{recall:8.2f}{true:6}{beside:8}{missed:8}", file=out)
    wrong = [(sample, report) for sample, report in judged if not sample.right(report)]
    for sample, report in wrong:
        found = ", ".join(f"{f.severity} {f.probe}" for f in report.findings if f.severity is not Severity.INFO)
        verdicts = f"must be {sample.verdict}, is {sample.result(report)}"
        print(f"\n{sample.name} ({sample.kind}): {verdicts}: {found or 'nothing'}", file=out)
    missed_refusals = [s for s, r in judged if s.verdict == "refuse" and not s.needs and r.admitted]
    refused_sound = [s for s, r in judged if not s.faulty and not r.admitted]
    faulty = [s for s, _ in judged if s.faulty]
    apart = Counter(s.needs.partition(":")[0] for s in faulty if s.needs)
    needed = ", ".join(f"{count} need {what}" for what, count in sorted(apart.items())) or "none"
    print(f"\n{len(faulty)} faulty programs, {len(judged) - len(faulty)} sound ones", file=out)
    print(f"faults to refuse that were admitted: {len(missed_refusals)}", file=out)
    print(f"sound programs refused: {len(refused_sound)}", file=out)
    print(f"counted apart, not to be found by running alone: {sum(apart.values())} ({needed})", file=out)
    return 1 if missed_refusals or refused_sound else 0


if __name__ == "__main__":
    sys.exit(main())

"""``spade validate``: the full probe report on files, no model needed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from spade_envs.cli.console import IsolationOption, JsonOption, check_isolation, out, print_json, progress, shown


def validate(
    paths: Annotated[list[Path], typer.Argument(help="Programs (.py, .json, .jsonl) or folders of them.")],
    numpy: Annotated[bool, typer.Option("--allow-numpy", help="Let the programs import numpy.")] = False,
    require_proof: Annotated[bool, typer.Option(help="Refuse programs without a solution() that wins.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every finding with its evidence.")] = False,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Probe environments in the sandbox and print one line for each, with the reasons.

    Exit code 1 if any is refused.

    Example: `spade validate my_envs/ -v`
    """
    from spade_envs.sandbox import Sandbox
    from spade_envs.validation import ValidationConfig, collect_sources, render, validate_many

    sources = collect_sources(paths)
    if not sources:
        raise ValueError(f"no programs (.py, .json, .jsonl) in {', '.join(map(str, paths))}")
    config = ValidationConfig(require_proof=require_proof)
    reports = []
    with (
        Sandbox(minimum_isolation=check_isolation(isolation)) as sandbox,
        progress("validate", len(sources)) as advance,
    ):
        results = validate_many(
            [source for _, source in sources], sandbox=sandbox, allow=("numpy",) if numpy else (), config=config
        )
        for (label, _), report in zip(sources, results, strict=True):
            reports.append((label, report))
            advance(len(reports), label)
            if as_json:
                continue
            out.print(shown(render.one_line(report, label)))
            for finding in report.findings if verbose else ():
                out.print(f"    {finding.severity:6} {finding.probe}: {shown(finding.reason)}")
                if finding.evidence:
                    out.print(f"           {shown(str(dict(finding.evidence)), 600)}")
    refused = sum(not report.admitted for _, report in reports)
    if as_json:
        print_json([{"label": label, **report.to_dict()} for label, report in reports])
    else:
        reasons = Counter(probe for _, report in reports for probe in {finding.probe for finding in report.refusals})
        words = ", ".join(f"{probe} {count}" for probe, count in reasons.most_common())
        out.print(f"{len(reports) - refused} admitted, {refused} refused" + (f" ({words})" if words else ""))
    raise typer.Exit(1 if refused else 0)

"""``spade validate``: the full probe report on files and pools, no model needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spade_envs.cli.console import (
    AllowOption,
    IsolationOption,
    JsonOption,
    check_isolation,
    err,
    json_list,
    opt_in,
    out,
    progress,
    shown,
)

if TYPE_CHECKING:
    from spade_envs.validation.fix_files import FileFix
    from spade_envs.validation.judge import Judge
    from spade_envs.validation.pool import Verdict


def validate(
    paths: Annotated[list[Path], typer.Argument(help="Programs (.py, .json, .jsonl) or folders of them.")],
    allow: AllowOption = None,
    require_proof: Annotated[bool, typer.Option(help="Refuse programs without a solution() that wins.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every finding with its evidence.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the table of reasons only.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Programs validated at once.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write each report to this JSONL file as it comes.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the --output file: what it holds is not run again.")
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend fences, imports, braces and escapes; write FILE.fixed.py.")
    ] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="With --fix: overwrite the .py file itself.")] = False,
    strict_contradictions: Annotated[
        bool, typer.Option("--strict-contradictions", help="Exit code 1 if two programs contradict each other.")
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge", metavar="MODEL", help="A model that reads each admitted program: hf:…, vllm:…, openai:…."
        ),
    ] = None,
    judge_refuses: Annotated[
        bool, typer.Option("--judge-refuses", help="With --judge: what the model disagrees with is refused.")
    ] = False,
    base_url: Annotated[str | None, typer.Option(help="With --judge: the endpoint of openai:<model>.")] = None,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Probe environments in the sandbox and print one line for each, with the reasons.

    Programs are read and reported one at a time, so a pool may be of any size. Exit code 1 if any is refused.

    Example: `spade validate my_envs/ -v`

    A model as judge: `spade validate my_envs/ --judge openai:my-model --base-url http://localhost:8000/v1`

    A large pool, to go on with after a kill: `spade validate pool/ -q -j 4 -o reports.jsonl --resume`
    """
    from spade_envs.validation import ValidationConfig, count_sources, find_source, iter_sources
    from spade_envs.validation.fix_files import fix_files, fixed_source
    from spade_envs.validation.pool import validate_pool
    from spade_envs.validation.report_log import ReportLog, configuration_key
    from spade_envs.validation.tally import Tally

    if resume and output is None:
        raise ValueError("--resume needs --output FILE.jsonl, where the reports of the killed run are")
    if in_place and not fix:
        raise ValueError("--in-place is for --fix")
    if judge is None and (judge_refuses or base_url is not None):
        raise ValueError("--judge-refuses and --base-url are for --judge MODEL")
    level, modules = check_isolation(isolation), opt_in(allow)
    config = ValidationConfig(require_proof=require_proof)
    total = count_sources(paths)
    tally, contradicted = Tally(), 0
    fixes: dict[str, FileFix] = {}  # of programs that are under way
    with ExitStack() as stack:
        log, reader = None, None
        key = configuration_key(config, modules)
        if judge is not None:
            reader = _judge(judge, base_url, refuses=judge_refuses)
            stack.callback(reader.model.close)
            key += reader.key
        if output is not None:
            log = stack.enter_context(ReportLog(output, key, resume=resume))
            if len(log) and not as_json:
                err.print(f"{len(log)} reports are in {shown(str(output))} already")
        write = stack.enter_context(json_list()) if as_json else None
        advance = stack.enter_context(progress("validate", total))

        def sources() -> Iterator[tuple[str, str]]:
            if not fix:
                yield from iter_sources(paths)
                return
            for mended in fix_files(paths, in_place=in_place):
                fixes[mended.label] = mended
                yield mended.label, mended.source

        verdicts = validate_pool(
            sources(),
            find=fixed_source if fix else find_source,
            jobs=jobs,
            isolation=level,
            allow=modules,
            config=config,
            log=log,
            judge=reader,
        )
        for verdict in verdicts:
            tally.add(verdict.label, verdict.report)
            contradicted += bool(verdict.contradictions)
            advance(tally.total, verdict.label)
            mended = fixes.pop(verdict.label, None)
            if write:
                write(_entry(verdict, mended))
            else:
                _print(verdict, mended, verbose=verbose, quiet=quiet)
    if not tally.total:
        raise ValueError(f"no programs (.py, .json, .jsonl) in {', '.join(map(str, paths))}")
    if not as_json:
        if tally.total > 1 and (table := tally.table()):
            out.print(f"\n{shown(table)}\n")
        out.print(shown(tally.summary()))
    if reader is not None:
        err.print(shown(reader.summary()))
    if reader is not None and reader.asked and reader.failed == reader.asked:
        raise ValueError(f"the judge gave no verdict at all: {reader.first_error}")
    raise typer.Exit(1 if tally.refused or (strict_contradictions and contradicted) else 0)


def _judge(model: str, base_url: str | None, *, refuses: bool) -> Judge:
    from spade_envs.models import load_model
    from spade_envs.validation import Severity

    if model == "nano":
        raise ValueError("the embedded model knows its own small exercises only; judge by hf:…, vllm:… or openai:…")
    from spade_envs.validation.judge import Judge

    return Judge(load_model(model, base_url=base_url), severity=Severity.REFUSE if refuses else Severity.WARN)


def _entry(verdict: Verdict, mended: FileFix | None) -> dict[str, Any]:
    fixed = {} if mended is None else {"fixed": {"path": mended.path, "mends": list(mended.mends)}}
    return {"label": verdict.label, **fixed, **verdict.report.to_dict()}


def _print(verdict: Verdict, mended: FileFix | None, *, verbose: bool, quiet: bool) -> None:
    from spade_envs.validation import render

    if mended is not None and mended.mends:
        out.print(f"{shown(verdict.label)}: mended: {shown('; '.join(mended.mends))} → {shown(mended.path)}")
    elif mended is not None and not quiet and not verdict.report.admitted:
        out.print(f"{shown(verdict.label)}: --fix found nothing that it can mend; what follows needs you")
    if not quiet:
        out.print(shown(render.one_line(verdict.report, verdict.label)))
    if not verbose:
        for finding in () if quiet else verdict.contradictions:
            out.print(f"    {finding.severity:6} {finding.probe}: {shown(finding.reason)}")
        return
    for finding in verdict.report.findings:
        out.print(f"    {finding.severity:6} {finding.probe}: {shown(finding.reason)}")
        if finding.evidence:
            out.print(f"           {shown(str(dict(finding.evidence)), 600)}")

"""``spade import``, ``export``, ``push`` and ``pull``: pools of environments in and out of a memory."""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spade_envs.cli.console import (
    AllowOption,
    IsolationOption,
    JsonOption,
    MemoryOption,
    check_isolation,
    err,
    opt_in,
    out,
    print_json,
    progress,
    shown,
)

if TYPE_CHECKING:
    from spade_envs.pools import ExportFilter, ExportSummary

JobsOption = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Programs validated at once.")]
LicenceOption = Annotated[str, typer.Option(help="Licence of those for which none is given.")]
GeneratorOption = Annotated[
    str, typer.Option(help="Model that wrote those for which none is given. Default: import:POOL.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with the reports of --log FILE, as with those in the memory anyway.")
]
LogOption = Annotated[
    Path | None, typer.Option(help="JSON lines, a report for each program. Default: import-POOL.jsonl in the memory.")
]
PromptsOption = Annotated[
    str | None,
    typer.Option(help="Judge as strictly as this prompt set does: nano, small, games, tool_use or a folder."),
]
SimilarOption = Annotated[
    float | None,
    typer.Option(min=0.5, max=1, help="Also leave out programs that overlap a stored one by this much, such as 0.85."),
]
EndpointOption = Annotated[str | None, typer.Option(help="Another Hub than huggingface.co.")]
RevisionOption = Annotated[str | None, typer.Option(help="Branch, tag or commit of the dataset.")]
_SHOWN_DUPLICATES = 10


def import_pool(
    source: Annotated[
        str, typer.Argument(help="Folder, .py, .json, .jsonl, .csv, .parquet, .spade, or hf:OWNER/NAME.")
    ],
    memory: MemoryOption = None,
    licence: LicenceOption = "",
    generator: GeneratorOption = "",
    allow: AllowOption = None,
    jobs: JobsOption = 1,
    resume: ResumeOption = False,
    log: LogOption = None,
    prompts: PromptsOption = None,
    require_proof: Annotated[bool, typer.Option(help="Refuse programs without a solution() that wins.")] = False,
    similar: SimilarOption = None,
    revision: RevisionOption = None,
    endpoint: EndpointOption = None,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Import a pool: every program is checked against its SHA-256 and validated in the sandbox.

    Import it again after an interruption, or when programs were corrected: what has not changed is not run again.
    Exit code 1 if any is refused. Programs that are there already are said, with the id that they repeat.

    Example: `spade import SPADE-Environments-ToolUse/ --memory m --jobs 4 --licence Apache-2.0`
    """
    from spade_envs.designer.designer import validation_config
    from spade_envs.designer.prompts import PromptSet
    from spade_envs.memory import Memory, default_home
    from spade_envs.pools import Outcome, open_pool
    from spade_envs.pools import import_pool as run_import
    from spade_envs.pools.hub import HUB, cache_folder, fetch
    from spade_envs.validation import ValidationConfig
    from spade_envs.validation.report_log import ReportLog, configuration_key
    from spade_envs.validation.tally import Tally

    config = ValidationConfig() if prompts is None else validation_config(PromptSet.load(prompts))
    config = dataclasses.replace(config, require_proof=config.require_proof or require_proof)
    modules = opt_in(allow)
    folder = memory or default_home()
    tally, statuses, repeats = Tally(), Counter[str](), list[Outcome]()
    with ExitStack() as stack:
        if source.startswith(HUB):
            place = fetch(source, cache_folder(source), revision=revision, endpoint=endpoint)
            pool = dataclasses.replace(open_pool(place), origin=source + (f"@{revision}" if revision else ""))
        else:
            pool = open_pool(source)
        resume = resume or log is None
        log = log or folder / f"import-{pool.name}.jsonl"
        store = stack.enter_context(Memory.open(folder))
        reports = stack.enter_context(ReportLog(log, configuration_key(config, modules), resume=resume))
        advance = stack.enter_context(progress("import", pool.size))
        outcomes = run_import(
            pool, store, jobs=jobs, isolation=check_isolation(isolation), allow=modules, config=config, log=reports,
            licence=licence, generator=generator, similar=similar,
        )  # fmt: skip
        for outcome in outcomes:
            statuses[outcome.status] += 1
            if outcome.status in ("admitted", "refused"):
                tally.add(outcome.label, outcome.report)
            elif outcome.status == "duplicate":
                repeats.append(outcome)
            advance(statuses.total(), outcome.label)
    if as_json:
        print_json(
            {
                "pool": pool.name, "layout": pool.layout, "memory": str(folder), "log": str(log),
                **{status: statuses[status] for status in ("admitted", "refused", "duplicate", "present")},
                "proven": tally.proven, "refusals": dict(tally.refusals.most_common()),
                "duplicates": [{"label": one.label, "id": one.id, "reason": one.reason} for one in repeats],
            }
        )  # fmt: skip
    else:
        if table := tally.table():
            out.print(f"{shown(table)}\n")
        for one in repeats[:_SHOWN_DUPLICATES]:
            out.print(f"duplicate {shown(one.label)}: {shown(one.reason)} ({one.id[:16]})")
        if len(repeats) > _SHOWN_DUPLICATES:
            out.print(f"… and {len(repeats) - _SHOWN_DUPLICATES} duplicates more, in the log")
        present = f", {statuses['present']} imported before" if statuses["present"] else ""
        out.print(f"{shown(tally.summary())}, {len(repeats)} duplicates{present} · {pool.layout} {shown(pool.name)}")
        out.print(f"memory {shown(str(folder))} · reports {shown(str(log))}")
    if not statuses.total():
        raise ValueError(f"no programs in {source}")
    raise typer.Exit(1 if statuses["refused"] else 0)


def pull(
    name: Annotated[str, typer.Argument(help="OWNER/NAME of a dataset on the Hugging Face Hub.")],
    memory: MemoryOption = None,
    licence: LicenceOption = "",
    allow: AllowOption = None,
    jobs: JobsOption = 1,
    resume: ResumeOption = False,
    prompts: PromptsOption = None,
    revision: RevisionOption = None,
    endpoint: EndpointOption = None,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Fetch a pool from the Hub and import it; the same as `spade import hf:OWNER/NAME`.

    Example: `spade pull somebody/games --memory m --jobs 4`
    """
    from spade_envs.pools.hub import repository

    import_pool(
        f"hf:{repository(name)}", memory, licence=licence, allow=allow, jobs=jobs, resume=resume, prompts=prompts,
        revision=revision, endpoint=endpoint, isolation=isolation, as_json=as_json,
    )  # fmt: skip


KindFilter = Annotated[str | None, typer.Option("--kind", help="Only this kind: game or tool_use.")]
SkillFilter = Annotated[str | None, typer.Option("--skill", help="Only this skill.")]
GeneratorFilter = Annotated[str | None, typer.Option("--generator", help="Only what this model wrote.")]
RunFilter = Annotated[str | None, typer.Option("--run", help="Only what this run added.")]
ProvenFilter = Annotated[bool, typer.Option("--proven", help="Only what carries a proven solution().")]
ArchivedFilter = Annotated[bool, typer.Option("--archived", help="Archived records too.")]
PlaysFilter = Annotated[int, typer.Option("--min-plays", min=0, help="Only what was played at least so often.")]
MinWinFilter = Annotated[float | None, typer.Option("--min-win-rate", min=0, max=1, help="Lowest plain win rate.")]
MaxWinFilter = Annotated[float | None, typer.Option("--max-win-rate", min=0, max=1, help="Highest plain win rate.")]
RegretFilter = Annotated[float | None, typer.Option("--min-regret", min=-2, max=2, help="Lowest regret.")]


def export(
    target: Annotated[Path, typer.Argument(help="Folder to make; or one file that ends in .spade or .parquet.")],
    memory: MemoryOption = None,
    kind: KindFilter = None,
    skill: SkillFilter = None,
    generator: GeneratorFilter = None,
    run: RunFilter = None,
    proven: ProvenFilter = False,
    archived: ArchivedFilter = False,
    min_plays: PlaysFilter = 0,
    min_win_rate: MinWinFilter = None,
    max_win_rate: MaxWinFilter = None,
    min_regret: RegretFilter = None,
    licence: LicenceOption = "",
    name: Annotated[str | None, typer.Option(help="Name of the dataset. Default: that of the target.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Export a memory as a dataset: Parquet, manifest, .py files and a card; or as one file.

    Example: `spade export my-games --memory m --min-win-rate 0.2 --max-win-rate 0.8`
    """
    filters = _filters(kind, skill, generator, run, proven, archived, min_plays, min_win_rate, max_win_rate, min_regret)
    summary = _export(memory, target, filters, name, licence, force)
    if as_json:
        print_json(_facts(summary))
    else:
        _print_export(summary)


def push(
    repository: Annotated[str, typer.Argument(help="OWNER/NAME of the dataset; it is made if it is not there.")],
    memory: MemoryOption = None,
    kind: KindFilter = None,
    skill: SkillFilter = None,
    generator: GeneratorFilter = None,
    run: RunFilter = None,
    proven: ProvenFilter = False,
    min_plays: PlaysFilter = 0,
    min_win_rate: MinWinFilter = None,
    max_win_rate: MaxWinFilter = None,
    min_regret: RegretFilter = None,
    licence: LicenceOption = "",
    private: Annotated[bool, typer.Option("--private/--public", help="Who may see a dataset that is made.")] = True,
    endpoint: EndpointOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a memory and push it to the Hugging Face Hub. Login: `hf auth login`, or HF_TOKEN.

    Example: `spade push me/my-games --memory m --kind game --public`
    """
    from spade_envs.pools import hub

    repo = hub.repository(repository)
    filters = _filters(kind, skill, generator, run, proven, False, min_plays, min_win_rate, max_win_rate, min_regret)
    with tempfile.TemporaryDirectory(prefix="spade-push-") as place:
        summary = _export(memory, Path(place) / "export", filters, repo.rpartition("/")[2], licence, False)
        message = f"{summary.environments} environments, {summary.plays} plays"
        address = hub.push(summary.path, repo, private=private, message=message, endpoint=endpoint)
    if as_json:
        print_json({**_facts(summary), "path": address})
    else:
        out.print(f"{message} → {shown(address)}")


def _filters(
    kind: str | None,
    skill: str | None,
    generator: str | None,
    run: str | None,
    proven: bool,
    archived: bool,
    min_plays: int,
    min_win_rate: float | None,
    max_win_rate: float | None,
    min_regret: float | None,
) -> ExportFilter:
    from spade_envs.pools import ExportFilter

    return ExportFilter(
        kind, skill, generator, run, proven, archived, min_plays, min_win_rate, max_win_rate, min_regret
    )


def _export(
    memory: Path | None, target: Path, filters: ExportFilter, name: str | None, licence: str, force: bool
) -> ExportSummary:
    from spade_envs.memory import Memory
    from spade_envs.pools import export_memory

    with Memory.open(memory, read_only=True) as store:
        summary = export_memory(store, target, filters=filters, name=name, licence=licence, force=force)
    if summary.left_out:
        err.print(f"[yellow]{summary.left_out} left out: their source is no UTF-8 text[/]")
    return summary


def _facts(summary: ExportSummary) -> dict[str, Any]:
    return {
        "path": str(summary.path),
        "environments": summary.environments,
        "plays": summary.plays,
        "left_out": summary.left_out,
        "licences": summary.licences,
    }


def _print_export(summary: ExportSummary) -> None:
    licences = ", ".join(f"{licence or 'no licence given'} {count}" for licence, count in summary.licences.items())
    out.print(f"{summary.environments} environments, {summary.plays} plays → {shown(str(summary.path))}")
    out.print(f"licences  {shown(licences)}")

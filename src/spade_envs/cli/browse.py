"""``spade list``, ``show``, ``search`` and ``stats``: look into a memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.syntax import Syntax
from rich.table import Table

from spade_envs.cli.console import JsonOption, MemoryOption, out, print_json, print_table, shown
from spade_envs.memory import Compacted, Memory
from spade_envs.record import EnvironmentRecord

LEARNABLE = (0.2, 0.8)
"""Win rates between these count as learnable (the paper's band for reporting)."""

SkillOption = Annotated[str | None, typer.Option("--skill", help="Only this skill.")]
KindOption = Annotated[str | None, typer.Option("--kind", help="Only this kind: game or tool_use.")]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _row(record: EnvironmentRecord) -> dict[str, Any]:
    played = record.statistics
    return {
        "env_id": record.env_id,
        "id": record.id,
        "kind": record.kind,
        "skill": record.skill,
        "generator": record.generator,
        "proven": record.proven,
        "plays": played.plain_plays + played.hinted_plays,
        "win_rate": played.win_rate,
        "regret": played.regret,
    }


def _table(title: str, rows: list[dict[str, Any]], scores: list[float] | None = None) -> Table:
    generators = {row["generator"] for row in rows}
    if len(generators) == 1:  # a column that says the same in every row goes into the title
        title += f", by {shown(generators.pop(), 20) or '–'}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    if scores is not None:
        table.add_column("score", justify="right", no_wrap=True)
    for name in ("id", "skill", *(("generator",) if generators else ()), "proven"):
        table.add_column(name, no_wrap=True)
    for name in ("plays", "win", "regret"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, row in enumerate(rows):
        cells = [f"{scores[index]:.3f}"] if scores is not None else []
        cells += [shown(row["env_id"]), shown(row["skill"], 24)]
        cells += [shown(row["generator"], 20)] if generators else []
        cells += ["✓" if row["proven"] else ""]
        cells += [str(row["plays"]), _number(row["win_rate"]), _number(row["regret"])]
        table.add_row(*cells)
    return table


def list_records(
    memory: MemoryOption = None,
    skill: SkillOption = None,
    kind: KindOption = None,
    generator: Annotated[str | None, typer.Option("--generator", help="Only what this model wrote.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many, newest first.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List the environments of a memory, newest first.

    Example: `spade list --memory runs/m --skill Optimization -n 20`
    """
    with Memory.open(memory, read_only=True) as store:
        records = store.records(kind=kind, skill=skill, generator=generator, limit=limit, newest_first=True)
        total = len(store)
    rows = [_row(record) for record in records]
    if as_json:
        print_json(rows)
    else:
        print_table(_table(f"{len(rows)} of {total} environments", rows))


def search(
    query: Annotated[str, typer.Argument(help="Words that describe the environment.")],
    memory: MemoryOption = None,
    skill: SkillOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Find environments by meaning.

    Example: `spade search "reverse a list of animals" --memory runs/m`
    """
    with Memory.open(memory, read_only=True) as store:
        hits = store.search(query, limit, skill=skill)
    rows = [{**_row(record), "score": score} for record, score in hits]
    if as_json:
        print_json(rows)
    else:
        print_table(_table(f"{len(rows)} nearest to {shown(repr(query), 62)}", rows, [score for _, score in hits]))


def show(
    key: Annotated[str, typer.Argument(help="An id as printed by list: spade/…, or the first digits of the hash.")],
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one environment: its page, source, hint, findings and statistics.

    Example: `spade show spade/Guess-1a2b3c4d-v0 --memory runs/m`
    """
    with Memory.open(memory, read_only=True) as store:
        record = store.get(key)
    if as_json:
        print_json({**record.to_dict(), "env_id": record.env_id})
        return
    row = _row(record)
    out.print(
        f"[bold]{shown(record.env_id)}[/]  {shown(record.skill)} · {shown(record.kind)} · by {shown(record.generator)}"
    )
    out.print(f"sha256   {record.id}")
    out.print(f"plays    {row['plays']} · win rate {_number(row['win_rate'])} · regret {_number(row['regret'])}")
    out.print(f"proven   {'yes: solution() earns the full return' if record.proven else 'no'}")
    if record.parents:
        out.print("parents  " + ", ".join(parent[:8] for parent in record.parents))
    if record.document:
        out.print(f"document {shown(' '.join(record.document.split()), 200)}")
    if record.hint:
        out.print(f"hint     {shown(record.hint, 400)}")
    for finding in record.report.get("findings", ()):
        out.print(f"{shown(finding['severity']):8} {shown(finding['probe'])}: {shown(finding['reason'], 300)}")
    out.print()
    out.print(Syntax(shown(record.source).replace("\\[", "["), "python", line_numbers=True, word_wrap=True))


def summarise(records: list[EnvironmentRecord]) -> dict[str, Any]:
    """Return counts, the learnable share and histograms over ``records``, JSON-safe.

    ``learnable_share`` is the share of played environments whose plain win rate lies in [0.2, 0.8]; None before
    any play. ``regret_histogram`` counts regrets in ten bins over [-1, 1].
    """
    rates = [record.statistics.win_rate for record in records if record.statistics.win_rate is not None]
    regrets = [record.statistics.regret for record in records if record.statistics.regret is not None]
    bins = Counter(min(9, max(0, int((regret + 1) * 5))) for regret in regrets)
    return {
        "environments": len(records),
        "proven": sum(record.proven for record in records),
        "played": len(rates),
        "learnable_share": sum(LEARNABLE[0] <= rate <= LEARNABLE[1] for rate in rates) / len(rates) if rates else None,
        "mean_win_rate": sum(rates) / len(rates) if rates else None,
        "mean_regret": sum(regrets) / len(regrets) if regrets else None,
        "regret_histogram": [bins[index] for index in range(10)],
        "by_skill": dict(Counter(record.skill for record in records).most_common()),
        "by_kind": dict(Counter(record.kind for record in records).most_common()),
        "by_generator": dict(Counter(record.generator for record in records).most_common()),
    }


def generation(store: Memory) -> dict[str, Any]:
    """Return what the runs of ``spade generate`` in a memory came to, JSON-safe."""
    from spade_envs.designer.summary import total

    whole = total(store.progress(run)[1] for run in store.runs())
    return {
        "attempts": whole.attempts,
        "judged": whole.judged,
        "first_validity": whole.first_validity,
        "final_validity": whole.final_validity,
        "repair_turns": whole.repair_turns,
        "causes": dict(whole.causes.most_common()),
    }


def _compacted(memory: Path | None, drop_archived: bool) -> Compacted:
    with Memory.open(memory, read_only=True):  # there is one: opening for writing would make it
        pass
    with Memory.open(memory) as store:
        return store.compact(drop_archived=drop_archived)


def stats(
    memory: MemoryOption = None,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="First make it smaller: plays become sums; no run goes back behind this point."),
    ] = False,
    drop_archived: Annotated[
        bool,
        typer.Option("--drop-archived", help="With --compact: give up the sources of archived environments too."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Summarise a memory: how many, how learnable, how much regret, by skill, kind and generator.

    Example: `spade stats --memory runs/m --json`
    """
    if drop_archived and not compact:
        raise typer.BadParameter("--drop-archived works together with --compact; give both")
    compacted = _compacted(memory, drop_archived) if compact else None
    with Memory.open(memory, read_only=True) as store:
        facts = {**summarise(store.records()), "generation": generation(store)}
    if compacted:
        facts["compacted"] = asdict(compacted)
        if not as_json:
            before, after = (size / 1e6 for size in (compacted.bytes_before, compacted.bytes_after))
            out.print(
                f"compacted        {before:.1f} to {after:.1f} MB ({compacted.plays_folded} plays folded, "
                f"{compacted.sources_dropped} sources dropped)"
            )
    if as_json:
        print_json(facts)
        return
    out.print(f"environments     {facts['environments']} ({facts['proven']} proven, {facts['played']} played)")
    out.print(f"learnable share  {_number(facts['learnable_share'])}   (win rate in {LEARNABLE[0]}–{LEARNABLE[1]})")
    out.print(f"mean win rate    {_number(facts['mean_win_rate'])}")
    out.print(f"mean regret      {_number(facts['mean_regret'])}")
    written = facts["generation"]
    if written["judged"]:
        out.print(
            f"valid            {_number(written['first_validity'])} at the first reply, "
            f"{_number(written['final_validity'])} in the end   (of {written['judged']} judged attempts, "
            f"{written['repair_turns']} repairs)"
        )
    top = max(facts["regret_histogram"])
    for index, count in enumerate(facts["regret_histogram"] if top else []):
        low = -1 + index / 5
        out.print(f"  regret {low:+.1f} to {low + 0.2:+.1f}  {'█' * round(40 * count / top)} {count}")
    for title in ("by_skill", "by_kind", "by_generator"):
        words = ", ".join(f"{shown(name, 40) or '–'} {count}" for name, count in facts[title].items())
        out.print(f"{title.replace('_', ' '):16} {words}")

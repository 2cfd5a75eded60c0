"""``spade list``, ``show``, ``search`` and ``stats``: look into a memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.syntax import Syntax
from rich.table import Table

from spade_envs.cli.console import JsonOption, MemoryOption, out, print_json, print_table, shown
from spade_envs.memory import Memory
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
    if not query.strip():
        raise ValueError("expected words that describe the environment, got nothing")
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
        retired = store.retired().get(record.id, "")
    if as_json:
        print_json({**record.to_dict(), "env_id": record.env_id, "retired": retired})
        return
    row = _row(record)
    out.print(
        f"[bold]{shown(record.env_id)}[/]  {shown(record.skill)} · {shown(record.kind)} · by {shown(record.generator)}"
    )
    out.print(f"sha256   {record.id}")
    out.print(f"plays    {row['plays']} · win rate {_number(row['win_rate'])} · regret {_number(row['regret'])}")
    if retired:
        out.print(f"retired  {shown(retired, 200)}")
    out.print(f"proven   {'yes: solution() earns the full return' if record.proven else 'no'}")
    if record.allow:
        out.print(f"opt-in   {shown(', '.join(record.allow))}")
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

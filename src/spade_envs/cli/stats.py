"""``spade stats``: how many, how learnable, how much regret, how diverse; over all and by skill, kind and generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from spade_envs.cli.browse import LEARNABLE
from spade_envs.cli.console import JsonOption, MemoryOption, out, print_json, print_table, shown
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord

if TYPE_CHECKING:
    from spade_envs.memory.compaction import Compacted

_GROUPS: dict[str, Callable[[EnvironmentRecord], str]] = {
    "skill": lambda record: record.skill,
    "kind": lambda record: record.kind,
    "generator": lambda record: record.generator,
}
_BINS = 10


def summarise(records: Sequence[EnvironmentRecord], vectors: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return counts, the learnable share, diversity and a histogram over ``records``, JSON-safe.

    ``learnable_share`` is the share of played environments whose plain win rate lies in [0.2, 0.8]; None before
    any play. ``regret_histogram`` counts regrets in ten bins over [-1, 1]. ``vendi`` is the Vendi score of the
    records' embeddings divided by their number, in (0, 1]: 1 when all are unlike each other.
    """
    from spade_envs.memory.diversity import vendi_score

    rates = [record.statistics.win_rate for record in records if record.statistics.win_rate is not None]
    regrets = [record.statistics.regret for record in records if record.statistics.regret is not None]
    bins = Counter(min(_BINS - 1, max(0, int((regret + 1) * _BINS / 2))) for regret in regrets)
    known = [vectors[record.id] for record in records if record.id in vectors] if vectors else []
    return {
        "environments": len(records),
        "proven": sum(record.proven for record in records),
        "played": len(rates),
        "learnable_share": fmean(LEARNABLE[0] <= rate <= LEARNABLE[1] for rate in rates) if rates else None,
        "mean_win_rate": fmean(rates) if rates else None,
        "mean_regret": fmean(regrets) if regrets else None,
        "regret_histogram": [bins[index] for index in range(_BINS)],
        "vendi": vendi_score(known) / len(known) if known else None,
    }


def by_group(records: Sequence[EnvironmentRecord], vectors: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the same figures by skill, kind and generator, the largest groups first."""
    grouped: dict[str, dict[str, Any]] = {}
    for title, name in _GROUPS.items():
        members: dict[str, list[EnvironmentRecord]] = {}
        for record in records:
            members.setdefault(name(record), []).append(record)
        largest = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
        grouped[f"by_{title}"] = {key: summarise(group, vectors) for key, group in largest}
    return grouped


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
    """Summarise a memory: how many, how learnable, how much regret, how diverse; by skill, kind and generator.

    Example: `spade stats --memory runs/m --json`
    """
    if drop_archived and not compact:
        raise typer.BadParameter("--drop-archived works together with --compact; give both")
    compacted = _compacted(memory, drop_archived) if compact else None
    with Memory.open(memory, read_only=True) as store:
        records = store.records()
        ids, rows = store.vectors()
        vectors = dict(zip(ids, rows, strict=True))
        facts = {**summarise(records, vectors), **by_group(records, vectors), "generation": generation(store)}
    if compacted:
        facts["compacted"] = asdict(compacted)
    if as_json:
        print_json(facts)
        return
    if compacted:
        _print_compacted(compacted)
    _print_facts(facts)
    for title in _GROUPS:
        _print_group(title, facts[f"by_{title}"])


def _print_compacted(compacted: Compacted) -> None:
    before, after = (size / 1e6 for size in (compacted.bytes_before, compacted.bytes_after))
    out.print(
        f"compacted        {before:.1f} to {after:.1f} MB ({compacted.plays_folded} plays folded, "
        f"{compacted.sources_dropped} sources dropped)"
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _print_facts(facts: Mapping[str, Any]) -> None:
    out.print(f"environments     {facts['environments']} ({facts['proven']} proven, {facts['played']} played)")
    out.print(f"learnable share  {_number(facts['learnable_share'])}   (win rate in {LEARNABLE[0]}–{LEARNABLE[1]})")
    out.print(f"mean win rate    {_number(facts['mean_win_rate'])}")
    out.print(f"mean regret      {_number(facts['mean_regret'])}")
    out.print(f"diversity        {_number(facts['vendi'])}   (Vendi score / n: 1 when all are unlike each other)")
    written = facts["generation"]
    if written["judged"]:
        out.print(
            f"valid            {_number(written['first_validity'])} at the first reply, "
            f"{_number(written['final_validity'])} in the end   (of {written['judged']} judged attempts, "
            f"{written['repair_turns']} repairs)"
        )
    top = max(facts["regret_histogram"])
    for index, count in enumerate(facts["regret_histogram"] if top else []):
        low = -1 + index * 2 / _BINS
        out.print(f"  regret {low:+.1f} to {low + 2 / _BINS:+.1f}  {'█' * round(40 * count / top)} {count}")


def _print_group(title: str, groups: Mapping[str, Mapping[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for name in ("environments", "played", "learnable", "win rate", "regret", "diversity"):
        table.add_column(name, justify="right", no_wrap=True)
    for key, facts in groups.items():
        figures = (facts[name] for name in ("learnable_share", "mean_win_rate", "mean_regret", "vendi"))
        table.add_row(
            shown(key, 40) or "–", str(facts["environments"]), str(facts["played"]), *map(_number, figures)
        )  # fmt: skip
    out.print()
    print_table(table)

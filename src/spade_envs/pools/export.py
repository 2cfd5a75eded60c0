"""Writing a memory as a dataset: typed tables, a manifest, the programs as files, and a card; or as one file."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spade_envs.memory import Memory
from spade_envs.memory.transfer import Stored, read_stored
from spade_envs.pools import table
from spade_envs.pools.candidate import PoolError
from spade_envs.pools.card import write_card

_PER_GENERATION = 1000  # files of one folder
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can hold


@dataclass(frozen=True, slots=True)
class ExportFilter:
    """What is exported; a bound on a statistic leaves out what was not played."""

    kind: str | None = None
    skill: str | None = None
    generator: str | None = None
    run: str | None = None
    proven: bool = False  # only what is proven
    archived: bool = False  # archived records too
    min_plays: int = 0
    min_win_rate: float | None = None
    max_win_rate: float | None = None
    min_regret: float | None = None

    def chosen(self, memory: Memory) -> Iterator[Stored]:
        """Yield what passes, in the order of ids."""
        everything = read_stored(
            memory,
            kind=self.kind,
            skill=self.skill,
            generator=self.generator,
            run=self.run,
            archived=None if self.archived else False,
        )
        return (stored for stored in everything if self._passes(stored))

    def _passes(self, stored: Stored) -> bool:
        played = stored.record.statistics
        bounds = (
            (played.win_rate, self.min_win_rate, self.max_win_rate),
            (played.regret, self.min_regret, None),
        )
        return (
            (stored.record.proven or not self.proven)
            and played.plain_plays + played.hinted_plays >= self.min_plays
            and all(
                (low is None and high is None)
                or (value is not None and (low is None or value >= low) and (high is None or value <= high))
                for value, low, high in bounds
            )
        )


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What was written."""

    path: Path
    environments: int
    plays: int
    left_out: int  # programs with lone surrogates, which no UTF-8 file can hold
    licences: dict[str, int]


def export_memory(
    memory: Memory,
    out: str | Path,
    *,
    filters: ExportFilter | None = None,
    name: str | None = None,
    licence: str = "",
    force: bool = False,
) -> ExportSummary:
    """Write the chosen records to ``out``: a folder, or one file if it ends in ``.spade`` (a ZIP) or ``.parquet``.

    The same records make the same bytes. Nothing is seen under ``out`` until all is written.

    Args:
        memory: what is exported.
        out: where to.
        filters: what is chosen; all live records by default.
        name: of the dataset, for its card; that of ``out`` by default.
        licence: of records that have none.
        force: replace what an earlier export wrote there.

    Raises:
        PoolError: if nothing is chosen, or ``out`` is there and is not to be replaced.
    """
    out = Path(out).expanduser()
    _check_target(out, force)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", suffix=".tmp", dir=out.parent) as place:
        folder = Path(place) / "export"
        folder.mkdir()
        whole = out.suffix not in (".spade", ".parquet")
        written = _Export(folder, files=whole)
        try:
            for stored in (filters or ExportFilter()).chosen(memory):
                written.add(stored, licence)
        finally:
            written.close()
        if not written.count:
            raise PoolError(f"nothing to export: no record of {memory.path} passes the filters")
        written.finish(name or out.stem)
        ready = folder
        if out.suffix == ".parquet":
            ready = folder / table.ENVIRONMENTS
        elif out.suffix == ".spade":
            ready = Path(place) / "packed"
            _pack(folder, ready)
        else:
            folder.chmod(0o755)
        if out.is_dir():
            shutil.rmtree(out)
        os.replace(ready, out)
    return ExportSummary(out, written.count, written.plays, written.left_out, dict(written.counts["by_licence"]))


def _check_target(out: Path, force: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    earlier = out.is_file() or (out / table.ENVIRONMENTS).is_file()
    if not force:
        raise PoolError(f"{out} is there already; name another place" + (", or replace it by --force" * earlier))
    if not earlier or (out.is_file() and out.suffix not in (".spade", ".parquet")):
        raise PoolError(f"{out} is not an export and is not replaced; name another place")


class _Export:
    """The files of one export while they are written."""

    def __init__(self, folder: Path, *, files: bool) -> None:
        self._folder, self._files = folder, files
        self._environments = table.TableWriter(folder / table.ENVIRONMENTS, table.environments_schema())
        self._plays: table.TableWriter | None = None
        self._games: list[dict[str, Any]] = []
        self._number = Counter[str]()
        self.count = self.plays = self.left_out = self._proven = self._played = self._hinted = 0
        self.counts = {name: Counter[str]() for name in ("by_kind", "by_skill", "by_generator", "by_licence")}

    def add(self, stored: Stored, licence: str) -> None:
        """Write one record."""
        record = stored.record
        try:
            source = record.source.encode()
        except UnicodeEncodeError:
            self.left_out += 1
            return
        path = self._path(stored)
        row = table.environment_row(stored, path)
        row["licence"] = row["licence"] or licence
        self._environments.add(row)
        for play in table.play_rows(stored):
            if self._plays is None:
                self._plays = table.TableWriter(self._folder / table.PLAYS, table.plays_schema())
            self._plays.add(play)
            self.plays += 1
        if self._files:
            file = self._folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(source)
        self.count += 1
        self._proven += record.proven
        played = record.statistics
        self._played += played.plain_plays > 0
        self._hinted += bool(record.hint)
        for counter, value in zip(
            self.counts.values(), (row["kind"], row["skill"], row["generator"], row["licence"]), strict=True
        ):
            counter[value] += 1
        self._games.append(
            {
                "game_id": row["game_id"],
                "filename": row["file_name"],
                "path_in_dataset": path,
                "generation": path.split("/")[1] if path.startswith("games/") else None,
                "step": int(path.split("/")[1][4:]) if path.startswith("games/") else None,
                "source_run": row["run"],
                "env_id": row["env_id"],
                **{name: row[name] for name in ("sha256", "skill", "kind", "hint", "generator", "licence")},
                **{name: row[name] for name in ("line_count", "byte_count")},
                "has_hint": bool(record.hint),
                "reward_joined": played.plain_plays > 0,
                "n_plays": played.plain_plays,
                "mean_reward": played.mean_plain,
                "solve_rate": played.win_rate,
                "regret": played.regret,
            }
        )

    def close(self) -> None:
        """Finish the tables."""
        self._environments.close()
        if self._plays is not None:
            self._plays.close()

    def finish(self, name: str) -> None:
        """Write manifest and card."""
        summary = {
            "format": table.FORMAT,
            "n_games": self.count,
            "n_skipped": self.left_out,
            "n_with_skill": self.count - self.counts["by_skill"][""],
            "n_with_hint": self._hinted,
            "n_proven": self._proven,
            "n_played": self._played,
            "n_plays": self.plays,
            **{key: dict(sorted(counts.items())) for key, counts in self.counts.items()},
        }
        manifest = json.dumps({"summary": summary, "games": self._games}, indent=1, ensure_ascii=False)
        (self._folder / "manifest.json").write_text(manifest + "\n", encoding="utf-8")
        card = write_card(name, summary, plays=self._plays is not None)
        (self._folder / "README.md").write_text(card, encoding="utf-8")

    def _path(self, stored: Stored) -> str:
        """Games as ``games/gen_NNNN/game_NNNNN_NNN_skill.py``, tool use as ``environments/<run>/<file>.py``."""
        record = stored.record
        slug = _slug(record.skill) or "environment"
        if record.kind == "tool_use":
            run = _slug(stored.run, keep="-.") or "run"
            number = self._number[run]
            self._number[run] += 1
            return f"environments/{run}/game_{number:06d}_{slug}.py"
        generation, place = divmod(self._number["games"], _PER_GENERATION)
        self._number["games"] += 1
        return f"games/gen_{generation:04d}/game_{generation:05d}_{place:03d}_{slug}.py"


def _slug(text: str, keep: str = "") -> str:
    return re.sub(rf"[^a-z0-9_{re.escape(keep)}]+", "_", text.lower()).strip("_.")[:60]


def _pack(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(file.name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with file.open("rb") as source, packed.open(entry, "w", force_zip64=True) as sink:
                shutil.copyfileobj(source, sink, 1 << 20)

"""What ``pool`` of a recipe may name, and how it is read."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spade_envs.memory import Memory
from spade_envs.memory.memory import DATABASE_NAME
from spade_envs.pools import Candidate, PoolError, open_pool
from spade_envs.pools.importing import program_of
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Limits, Sandbox
from spade_envs.sandbox.types import IsolationLevel
from spade_train.pool_sources.procedural import PACKAGE, reasoning_gym_pool
from spade_train.pool_sources.registered import gymnasium_pool
from spade_train.pool_sources.scorer import Scorer
from spade_train.pool_sources.trusted import Factory, TrustedSandbox

logger = logging.getLogger(__name__)

SOURCES = (
    "the folder of a memory, a pool (folder or file), several of these with commas between them, "
    "reasoning-gym:TASK[,TASK…] or gymnasium:ID[,ID…]"
)
_MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class FixedPool:
    """The environments of a fixed pool; ``trusted`` makes those that are not played in the sandbox, by source."""

    records: list[EnvironmentRecord]
    trusted: Mapping[str, Factory] = field(default_factory=dict)

    def sandbox(
        self, limits: Limits | None = None, *, max_workers: int = 64, minimum_isolation: IsolationLevel = "full"
    ) -> Sandbox:
        """Return a sandbox that opens every record of the pool by its source."""
        if not self.trusted:
            return Sandbox(limits or Limits(), max_workers=max_workers, minimum_isolation=minimum_isolation)
        return TrustedSandbox(self.trusted, limits, max_workers=max_workers, minimum_isolation=minimum_isolation)


def load_pool(spec: str | Path, *, minimum_isolation: IsolationLevel = "full") -> FixedPool:
    """Read the environments that ``spec`` names. Nothing of them is run.

    Programs of a pool that was not imported are not validated: `spade import` does that, and makes a memory of them.

    Args:
        spec: the folder of a memory (``memory:DIR``, or just the folder), an exported or published pool (folder,
            Parquet, JSONL, CSV, archive, program), several of these with commas between them,
            ``reasoning-gym:TASK[,TASK…]`` or ``reasoning-gym:all``, or ``gymnasium:ID[,ID…]``.
        minimum_isolation: for the process in which answers to procedural tasks are scored.

    Raises:
        PoolError: if there is nothing of the kind, or no environment in it.
        StoreError: if a memory cannot be read.
    """
    text = str(spec)
    kind, colon, rest = text.partition(":")
    procedural: dict[str, Callable[[list[str]], list[tuple[EnvironmentRecord, Factory]]]] = {
        PACKAGE: lambda names: reasoning_gym_pool(names, Scorer(minimum_isolation)),
        "gymnasium": gymnasium_pool,
    }
    if colon and kind in procedural:
        names = list(dict.fromkeys(name.strip() for name in rest.split(",") if name.strip()))
        made = procedural[kind](names)
        pool = FixedPool([record for record, _ in made], {record.source: make for record, make in made})
    else:
        found: dict[str, EnvironmentRecord] = {}
        for path in _paths(text):
            for record in _read(path):
                found.setdefault(record.id, record)
        pool = FixedPool(list(found.values()))
    if not pool.records:
        raise PoolError(f"pool {text} holds no environment; expected {SOURCES}")
    return pool


def _paths(text: str) -> list[str]:
    """The folders and files that a pool is made of: one, or several with commas between them."""
    if Path(text.removeprefix(_MEMORY)).expanduser().exists():
        return [text]
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip())) or [text]


def _read(text: str) -> list[EnvironmentRecord]:
    """The environments of one memory or pool."""
    folder = Path(text.removeprefix(_MEMORY)).expanduser()
    if text.startswith(_MEMORY) or (folder / DATABASE_NAME).is_file():
        with Memory.open(folder, read_only=True) as memory:
            return memory.records()
    return _programs(folder)


def _programs(path: Path) -> list[EnvironmentRecord]:
    """The programs of a pool, as far as they can be read; the rest is counted in the log."""
    if not path.exists():
        raise PoolError(f"there is no pool at {path}; expected {SOURCES}")
    found: dict[str, EnvironmentRecord] = {}
    refused: list[str] = []
    for candidate in open_pool(path):
        record = _record(candidate)
        if isinstance(record, EnvironmentRecord):
            found.setdefault(record.id, record)
        else:
            refused.append(f"{candidate.label}: {record}")
    if refused:
        logger.warning("pool %s: %d programs are not played, e.g. %s", path, len(refused), refused[0])
    return list(found.values())


def _record(candidate: Candidate) -> EnvironmentRecord | str:
    """Return the record of a program, or why there is none."""
    if candidate.problem:
        return candidate.problem
    if not candidate.intact:
        return "its SHA-256 is not the one that the pool gives"
    if candidate.stored is not None:
        return candidate.stored.record
    source, _ = program_of(candidate.code)
    name = _class_name(source)
    if not name:
        return "no class whose name ends in Env"
    try:
        fields: dict[str, Any] = dict(candidate.fields)
        return EnvironmentRecord.create(source, name, **fields)
    except ValueError as error:
        return str(error)


def _class_name(source: str) -> str:
    """The last class of the module whose name ends in Env, as a worker finds it; "" if there is none."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    names = [node.name for node in body if isinstance(node, ast.ClassDef) and node.name.endswith("Env")]
    return names[-1] if names else ""

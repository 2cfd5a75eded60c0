"""The environment memory: what is stored, what resembles what, what the designer is shown."""

from __future__ import annotations

import contextlib
import difflib
import os
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..record import EnvironmentRecord, source_id
from . import lexical, selection
from .database import StoreError, UnknownRecord, has_log
from .store import Plays, Store

if TYPE_CHECKING:
    from .embed import Embedder
    from .index import VectorIndex

DATABASE_NAME = "memory.sqlite"
DEFAULT_CAPACITY = 200
MIN_OVERLAP = 0.85
"""Overlap from which a program counts as a duplicate. Renamed programs measure .96 to 1, neighbours below .5."""

_NEIGHBOURS = 16
_ENV_ID = re.compile(r"(?:spade_envs:)?spade/(?P<stem>\w+)-(?P<prefix>[0-9a-f]{8})-v0\Z")
_PREFIX = re.compile(r"[0-9a-f]{6,64}\Z")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The record that a program repeats."""

    id: str
    similarity: float  # cosine of the embeddings, in [-1, 1]
    overlap: float  # Jaccard index of the normalised tokens, in [0, 1]


def default_home() -> Path:
    """Return the default memory folder: ``$SPADE_HOME``, else ``memory`` in the platform's data folder for spade."""
    home = os.environ.get("SPADE_HOME")
    if home:
        return Path(home).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("spade")) / "memory"


class Memory:
    """A folder with an SQLite database (the truth) and a vector index (a cache, made when first needed).

    Threads may share one; several processes may open the same folder and write at once. A forked child may go on
    using the memory of its parent.

    Example:
        >>> with Memory.open("pool") as memory:
        ...     memory.add(EnvironmentRecord.create(source, "MazeEnv", skill="Spatial Reasoning"))
        ...     memory.search("find the way out", k=3)
    """

    def __init__(self, path: Path, store: Store, embedder: Embedder | None, capacity: int) -> None:
        self.path = path
        self.capacity = capacity
        self._store = store
        self._embedder = embedder
        self._vectors: VectorIndex | None = None
        self._seen = (-1, 0)  # transaction and newest record that the vectors reflect
        self._shingles: dict[tuple[str, bool], Counter[int]] = {}

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        embedder: Embedder | None = None,
        capacity: int | None = None,
        read_only: bool = False,
    ) -> Memory:
        """Open the memory in the folder ``path`` (None: :func:`default_home`), making it unless ``read_only``.

        Args:
            embedder: what makes the vectors; WordLlama, or hashed words where it is not installed, if None.
            capacity: how many of the newest live records exemplars are drawn from, and what :meth:`evict` keeps.

        Raises:
            StoreError: if there is no memory (read-only), the file is not one, it is of a newer version, or the
                folder cannot be used.
        """
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        folder = (default_home() if path is None else Path(path).expanduser()).absolute()
        store = Store(folder / DATABASE_NAME, read_only=read_only)
        return cls(folder, store, embedder, capacity or DEFAULT_CAPACITY)

    @staticmethod
    def ids(path: str | Path) -> list[tuple[str, str]]:
        """Return (id, class name) of every record in the folder, archived ones too; [] if there is no memory.

        For registration: reads two columns and leaves nothing behind.

        Raises:
            StoreError: if the file is not a memory or of a newer version.
        """
        file = Path(path).expanduser() / DATABASE_NAME
        if not file.is_file() or file.stat().st_size == 0:
            return []
        if not has_log(file):
            before = file.stat().st_mtime_ns
            with contextlib.suppress(StoreError), contextlib.closing(Store(file, immutable=True)) as store:
                names = store.names()
                if not has_log(file) and file.stat().st_mtime_ns == before:  # nobody wrote meanwhile
                    return names
        with contextlib.closing(Store(file, read_only=True)) as store:
            return store.names()

    # ---- writing

    def add(self, record: EnvironmentRecord, *, run: str = "") -> bool:
        """Store ``record`` (its statistics become its base statistics); False if the id is there already."""
        return self._store.add([record], run) == 1

    def commit_round(
        self,
        run: str,
        round_index: int,
        records: Sequence[EnvironmentRecord],
        state: Mapping[str, Any] | None = None,
        *,
        plays: Sequence[Plays] = (),
    ) -> int:
        """Store a round's records, plays and the run's progress in one transaction; return how many records were new.

        Raises:
            ValueError: if this round of the run is committed already, or a return is not finite. KeyError: for plays
                of an unknown record. Nothing is stored then.
        """
        return self._store.commit_round(run, round_index, records, state or {}, plays)

    def progress(self, run: str) -> tuple[int, dict[str, Any]]:
        """Return (index of the run's next round, state of its last one); (0, {}) for an unknown run."""
        return self._store.progress(run)

    def record_plays(self, id: str, returns: Sequence[float], *, hinted: bool, run: str = "", step: int = 0) -> None:
        """Append the returns of episodes of record ``id`` (the full id). Statistics are sums over these rows.

        Raises:
            KeyError: for an unknown record. ValueError: for a return that is not finite.
        """
        self._store.record_plays(id, returns, hinted=hinted, run=run, step=step)

    def played(self, run: str) -> set[str]:
        """Return the ids of the records that ``run`` has played."""
        return self._store.played(run)

    def position(self) -> int:
        """Return a number that grows with every write, by any process; :meth:`rollback` goes back to it."""
        return self._store.position()

    def rollback(self, run: str, position: int) -> None:
        """Undo what ``run`` wrote after ``position``: its plays, records, progress and evictions.

        Writes of other runs stay, and so does a record that another run has played since.
        """
        if not run:
            raise ValueError("rollback needs the name of a run; writes without one are not rolled back")
        self._store.rollback(run, position)

    def evict(self, capacity: int | None = None, *, run: str = "") -> list[str]:
        """Archive what exceeds ``capacity`` (default: that of the memory) and return the ids.

        Mastered and hopeless records go first, the learning frontier last, the oldest first in each group.
        An archived record can still be got, made and found as a duplicate; it is not listed, searched or shown.
        """
        limit = self.capacity if capacity is None else capacity
        with self._store.database.lock:
            chosen = selection.choose_evicted(self._store.standings(), limit)
            if chosen:
                self._store.archive(chosen, run)
        return chosen

    # ---- reading

    def get(self, key: str) -> EnvironmentRecord:
        """Return the record with this id, id prefix (6 digits or more) or environment id.

        Raises:
            UnknownRecord: a KeyError that names what is near.
        """
        match = _ENV_ID.match(key)
        prefix = match["prefix"] if match else key.lower()
        ids = self._store.ids_with_prefix(prefix) if _PREFIX.match(prefix) else []
        found = self._store.by_ids(ids)
        if match:
            found = [record for record in found if record.env_id == f"spade/{match['stem']}-{prefix}-v0"]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"{record.id[:16]} ({record.name})" for record in found)
            raise UnknownRecord(f"{key!r} is not unique in {self.path}: {names}. Give more digits.")
        raise UnknownRecord(self._unknown(key))

    def records(
        self,
        *,
        kind: str | None = None,
        skill: str | None = None,
        generator: str | None = None,
        run: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        archived: bool | None = False,
    ) -> list[EnvironmentRecord]:
        """Return the records that match, in order of arrival. ``archived``: False live, True archived, None both."""
        return self._store.select(
            kind=kind,
            skill=skill,
            generator=generator,
            run=run,
            limit=limit,
            newest_first=newest_first,
            archived=archived,
        )

    def __len__(self) -> int:
        return self._store.count(live=True)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and len(id) == 64 and id in self._store.ids_with_prefix(id)

    # ---- resemblance

    def search(self, text: str, k: int = 10, *, skill: str | None = None) -> list[tuple[EnvironmentRecord, float]]:
        """Return up to ``k`` live records about ``text`` with their cosines, best first."""
        query, depth, total = lexical.words(text), k, self._store.count(live=False)
        while True:  # archived records and other skills are among the nearest: go deeper until enough are left
            hits = self._hits(query, depth)
            live = self._store.live_among([id for id, _ in hits], skill)
            chosen = [(id, score) for id, score in hits if id in live][:k]
            if len(chosen) >= k or depth >= total:
                break
            depth *= 4
        scores = dict(chosen)
        return [(record, scores[record.id]) for record in self._store.by_ids(list(scores))]

    def similar(self, source: str, k: int = 10) -> list[tuple[EnvironmentRecord, float]]:
        """Return up to ``k`` live records whose programs are about the same, best first."""
        return self.search(source, k)

    def duplicate_of(
        self, source: str, *, min_overlap: float = MIN_OVERLAP, literals: bool = False
    ) -> Duplicate | None:
        """Return the record (archived ones too) that ``source`` repeats, or None.

        Candidates are the same program, programs equal up to names, numbers and texts, and the nearest by
        embedding; a candidate is a duplicate when its normalised tokens overlap by ``min_overlap`` or more.

        Args:
            literals: let numbers and texts count as well, for families of programs that differ in little else.
        """
        text = lexical.words(source)
        hits = dict(self._hits(text, _NEIGHBOURS))
        same = source_id(source)
        if same in self:
            return Duplicate(same, 1.0, 1.0)
        # Any twin will do, unless literals must agree too: small program families have many twins.
        twins = self._store.ids_with_fingerprint(lexical.fingerprint(source))[: 256 if literals else 1]
        mine = lexical.shingles(source, literals=literals)
        best: Duplicate | None = None
        for record in self._store.by_ids(list(dict.fromkeys([*twins, *hits]))):
            overlap = lexical.overlap(mine, self._shingles_of(record, literals))
            if overlap >= min_overlap and (best is None or overlap > best.overlap):
                best = Duplicate(record.id, hits.get(record.id, 0.0), overlap)
        return best

    def rebuild_index(self) -> None:
        """Make the vector index anew from the database and save it."""
        from .embed import default_embedder
        from .index import index_file

        with self._store.database.lock:
            self._store.database.require_writable()
            index_file(self._embedder or default_embedder(), self.path).unlink(missing_ok=True)
            self._vectors, self._seen = None, (-1, 0)
            self._index().save(force=True)

    # ---- what the designer sees

    def exemplars(self, skill: str, rng: random.Random, n: int = 2) -> list[EnvironmentRecord]:
        """Draw up to ``n`` good examples of ``skill`` among the newest ``capacity`` live records.

        From the ``max(3 n, 10)`` of highest regret with a win rate in [0.15, 0.85]; what is then missing, from
        environments that nobody has played and whose solution is proven.
        """
        window = self._store.standings(newest=self.capacity, skill=skill)
        return self._store.by_ids(selection.choose_exemplars(window, rng, n))

    def negative(self, skill: str, rng: random.Random) -> EnvironmentRecord | None:
        """Draw an example of ``skill`` to avoid (win rate above 0.9 or below 0.1), if there is one."""
        window = self._store.standings(newest=self.capacity, skill=skill)
        chosen = selection.choose_negative(window, rng)
        return self.get(chosen) if chosen else None

    # ---- closing

    def close(self) -> None:
        """Save the index cache if it has grown and close the database."""
        with self._store.database.lock:
            if self._vectors is not None and not self._store.database.read_only:
                self._vectors.save(force=True)
            self._vectors = None
            self._store.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- inside

    def _index(self) -> VectorIndex:
        """Return the vectors, brought up to date with the database. Call it under the lock."""
        from .embed import default_embedder
        from .index import VectorIndex

        position = self._store.position()
        if self._vectors is None:
            self._vectors = VectorIndex(self._embedder or default_embedder(), self.path)
            self._seen = (-1, 0)
        if self._seen[0] == position:
            return self._vectors
        fresh = self._store.ids_after(self._seen[1])
        if self._seen[0] < 0 or self._store.count(live=False) != len(self._vectors) + len(fresh):
            fresh = self._store.ids_after(0)  # first use, or records are gone: compare the sets
            self._vectors.keep_only(id for _, id in fresh)
        missing = self._vectors.missing(id for _, id in fresh)
        for start in range(0, len(missing), 256):
            batch = self._store.by_ids(missing[start : start + 256])
            self._vectors.add([record.id for record in batch], [_text_of(record) for record in batch])
        if not self._store.database.read_only:
            self._vectors.save()
        self._seen = (position, fresh[-1][0] if fresh else self._seen[1])
        return self._vectors

    def _hits(self, text: str, k: int) -> list[tuple[str, float]]:
        with self._store.database.lock:
            return self._index().search(text, k)

    def _shingles_of(self, record: EnvironmentRecord, literals: bool) -> Counter[int]:
        key = (record.id, literals)
        found = self._shingles.get(key)
        if found is None:
            if len(self._shingles) >= 1024:
                self._shingles.clear()
            found = self._shingles[key] = lexical.shingles(record.source, literals=literals)
        return found

    def _unknown(self, key: str) -> str:
        names = [EnvironmentRecord(id=id, source="", name=name).env_id for id, name in self._store.names()]
        stems = {name.removeprefix("spade/").lower(): name for name in names}
        asked = key.removeprefix("spade_envs:").removeprefix("spade/").lower()
        near = [stems[stem] for stem in difflib.get_close_matches(asked, stems, n=3, cutoff=0.4)]
        near += [name for stem, name in stems.items() if asked and asked in stem and name not in near][:3]
        advice = f"did you mean {', '.join(near)}?" if near else f"it holds {len(names)} records; see `spade list`."
        return f"no record {key!r} in {self.path} (expected an id, 6 or more of its first digits, or spade/…): {advice}"


def _text_of(record: EnvironmentRecord) -> str:
    return lexical.words(f"{record.skill}\n{record.name}\n{record.source}")

"""The environment memory: what is stored, what resembles what, what the designer is shown."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..record import EnvironmentRecord
from . import compaction, diversity, lexical, retired, selection
from .compaction import Compacted
from .database import StoreError, UnknownRecord, has_log
from .resemblance import MIN_OVERLAP, Duplicate, Resemblance
from .store import Plays, Store

if TYPE_CHECKING:
    from .embed import Embedder, Vectors

DATABASE_NAME = "memory.sqlite"
DEFAULT_CAPACITY = 200
SAME_IDEA = 0.9
"""Similarity (the greater of cosine and overlap) from which exemplars count as versions of one idea."""

_OFFERED = 2_000  # newest settled or unplayed records that a draw looks at
_ENV_ID = re.compile(r"(?:spade_envs:)?spade/(?P<stem>\w+)-(?P<prefix>[0-9a-f]{8})-v0\Z")
_PREFIX = re.compile(r"[0-9a-f]{6,64}\Z")


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

    def __init__(
        self, path: Path, store: Store, embedder: Embedder | None, capacity: int, exact_up_to: int | None = None
    ) -> None:
        self.path = path
        self.capacity = capacity
        self._store = store
        self._resemblance = Resemblance(store, path, embedder, exact_up_to)

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        embedder: Embedder | None = None,
        capacity: int | None = None,
        read_only: bool = False,
        exact_up_to: int | None = None,
    ) -> Memory:
        """Open the memory in the folder ``path`` (None: :func:`default_home`), making it unless ``read_only``.

        Args:
            embedder: what makes the vectors; WordLlama, or hashed words where it is not installed, if None.
            capacity: how many of the newest live records exemplars are drawn from, and what :meth:`evict` keeps.
            exact_up_to: up to how many records searches compare with every one (default 10,000); above, with the
                nearest of learnt cells, which misses few.

        Raises:
            StoreError: if there is no memory (read-only), the file is not one, it is of a newer version, or the
                folder cannot be used.
        """
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        folder = (default_home() if path is None else Path(path).expanduser()).absolute()
        store = Store(folder / DATABASE_NAME, read_only=read_only)
        if read_only:
            store.database.upgrade_copy()
        return cls(folder, store, embedder, capacity or DEFAULT_CAPACITY, exact_up_to)

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

    def add_many(self, records: Iterable[EnvironmentRecord], *, run: str = "", batch: int = 1000) -> int:
        """Store ``records``, ``batch`` of them in each transaction; return how many were new.

        For imports: one by one, each record waits for the disk. A failure leaves whole batches.
        """
        if batch < 1:
            raise ValueError(f"batch must be at least 1, got {batch}")
        added, rest = 0, iter(records)
        while chunk := list(itertools.islice(rest, batch)):
            added += self._store.add(chunk, run)
        return added

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

    def runs(self) -> list[str]:
        """Return the names of the runs that stored progress, oldest first."""
        return self._store.run_names()

    def record_plays(self, id: str, returns: Sequence[float], *, hinted: bool, run: str = "", step: int = 0) -> None:
        """Append the returns of episodes of record ``id`` (the full id). Statistics are sums over these rows.

        Raises:
            KeyError: for an unknown record. ValueError: for a return that is not finite.
        """
        self._store.record_plays(id, returns, hinted=hinted, run=run, step=step)

    def returns(self, id: str, *, hinted: bool) -> list[float]:
        """Return the returns of a record's plays (the full id), oldest first; not those that a compaction folded."""
        return self._store.returns(id, hinted=hinted)

    def retire(self, id: str, reason: str, *, run: str = "") -> None:
        """Note why record ``id`` (the full id) is not replayed in training any more; the first reason stays.

        Raises:
            KeyError: for an unknown record.
        """
        retired.retire(self._store, id, reason, run)

    def retired(self) -> dict[str, str]:
        """Return the reasons of the records that are retired from replay, by id."""
        return retired.reasons(self._store)

    def played(self, run: str) -> set[str]:
        """Return the ids of the records that ``run`` has played."""
        return self._store.played(run)

    def position(self) -> int:
        """Return a number that grows with every write, by any process; :meth:`rollback` goes back to it."""
        return self._store.position()

    def rollback(self, run: str, position: int) -> None:
        """Undo what ``run`` wrote after ``position``: its plays, records, progress, retirements and evictions.

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
        if limit < 0:
            raise ValueError(f"capacity must be 0 or more, got {limit}")
        with self._store.database.lock:
            chosen = self._store.evictable(limit)
            if chosen:
                self._store.archive(chosen, run)
        return chosen

    def compact(self, *, before: int | None = None, drop_archived: bool = False) -> Compacted:
        """Make the memory smaller; statistics, and what counts as a duplicate, stay as they are.

        Plays become sums, free pages go back to the file system, and the index is made anew. A run whose plays were
        folded can no longer be rolled back to a position before them: :meth:`rollback` then says so.

        Args:
            before: fold only plays written up to this :meth:`position`, say that of the oldest checkpoint still needed.
            drop_archived: give up the sources of archived records. They still count as duplicates, but cannot be got,
                made, searched or exported any more.
        """
        with self._store.database.lock:
            done = compaction.compact(self._store, before=before, drop_archived=drop_archived)
        self.rebuild_index()
        return done

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
        query, depth = lexical.words(text), k if skill is None else 8 * k
        while True:  # archived records and other skills are among the nearest: go deeper until enough are left
            hits = self._resemblance.hits(query, depth)
            live = self._store.live_among([id for id, _ in hits], skill)
            chosen = [(id, score) for id, score in hits if id in live][:k]
            if len(chosen) >= k or len(hits) < depth:
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
        return self._resemblance.duplicate_of(source, min_overlap=min_overlap, literals=literals)

    def vectors(self) -> tuple[list[str], Vectors]:
        """Return the ids of the live records that have a vector, and their unit vectors, shape ``(n, d)``."""
        ids, vectors = self._resemblance.vectors()
        live = self._store.live_among(ids, None)
        kept = [place for place, id in enumerate(ids) if id in live]
        return [ids[place] for place in kept], vectors[kept]

    def embed(self, sources: Sequence[str]) -> Vectors:
        """Return the unit vectors of programs that need not be stored, shape ``(len(sources), d)``."""
        with self._store.database.lock:
            return self._resemblance.embedder().embed([lexical.words(source) for source in sources])

    def index_kind(self) -> str:
        """Return how searches are made now: ``flat`` (each record is compared) or ``ivf`` (cells; see ``ann.py``)."""
        with self._store.database.lock:
            return self._resemblance.index().kind

    def rebuild_index(self) -> None:
        """Make the vector index anew from the database and save it."""
        self._store.database.require_writable()
        self._resemblance.rebuild()

    # ---- what the designer sees

    def exemplars(self, skill: str, rng: random.Random, n: int = 2) -> list[EnvironmentRecord]:
        """Draw up to ``n`` good examples of ``skill``, of different ideas, among the newest ``capacity`` live records.

        From the ``max(3 n, 10)`` of highest regret with a win rate in [0.15, 0.85], each the first of its versions
        (similarity 0.9 or more); what is then missing, from environments that nobody has played and whose solution is
        proven. The first is drawn by ``rng``, each next one is the least similar to those before (farthest-first).
        """
        pool = selection.pool_size(n)
        chosen = self._spread(self._graded(skill, selection.FRONTIER, 2 * pool), pool, rng, n, [])
        if len(chosen) < n:
            unplayed = self._graded(skill, selection.PROVEN, _OFFERED)
            chosen = self._spread(rng.sample(unplayed, min(pool, len(unplayed))), pool, rng, n, chosen)
        return self._store.by_seqs(chosen)

    def negative(self, skill: str, rng: random.Random) -> EnvironmentRecord | None:
        """Draw an example of ``skill`` to avoid (win rate above 0.9 or below 0.1), if there is one."""
        settled = self._graded(skill, selection.HOPELESS_OR_MASTERED, _OFFERED)
        found = self._store.by_seqs([rng.choice(settled)]) if settled else []
        return found[0] if found else None

    # ---- closing

    def close(self) -> None:
        """Save the index cache if it has grown and close the database."""
        with self._store.database.lock:
            self._resemblance.close()
            self._store.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- inside

    def _graded(self, skill: str, grade: int, limit: int) -> list[int]:
        return self._store.graded(skill, grade, newest=self.capacity, limit=limit)

    def _spread(self, seqs: list[int], pool: int, rng: random.Random, n: int, given: list[int]) -> list[int]:
        """Add to ``given`` up to ``n`` mutually dissimilar ones of the first ``pool`` different ideas of ``seqs``."""
        if len(given) + len(seqs) <= 1:
            return given + seqs
        known, similarity = self._resemblance.similarity(given + seqs)
        first = len([seq for seq in given if seq in known])
        ideas = diversity.first_of_each(similarity[first:, first:], pool, SAME_IDEA)
        drawn = diversity.farthest_first(
            similarity, rng, n - first, list(range(first)), [first + place for place in ideas]
        )
        return given + [known[place] for place in drawn]

    def _unknown(self, key: str) -> str:
        names = [EnvironmentRecord(id=id, source="", name=name).env_id for id, name in self._store.names()]
        stems = {name.removeprefix("spade/").lower(): name for name in names}
        asked = key.removeprefix("spade_envs:").removeprefix("spade/").lower()
        near = [stems[stem] for stem in difflib.get_close_matches(asked, stems, n=3, cutoff=0.4)]
        near += [name for stem, name in stems.items() if asked and asked in stem and name not in near][:3]
        advice = f"did you mean {', '.join(near)}?" if near else f"it holds {len(names)} records; see `spade list`."
        return f"no record {key!r} in {self.path} (expected an id, 6 or more of its first digits, or spade/…): {advice}"

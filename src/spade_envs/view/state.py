"""What a server shows: one memory, runs, files of episodes, and the episodes that are played in the browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spade_envs.memory import Memory
from spade_envs.memory.overview import Overview
from spade_envs.view.games import Games
from spade_envs.view.run_files import EpisodePlace, Run, Transcripts

if TYPE_CHECKING:
    from spade_envs.sandbox import IsolationLevel


class View:
    """Opened files and processes of one server; a context manager."""

    def __init__(
        self,
        memory: Memory | None,
        runs: Sequence[Path] = (),
        episodes: Sequence[Path] = (),
        *,
        isolation: IsolationLevel = "full",
    ) -> None:
        """Show ``memory``, the run folders ``runs`` and the transcripts in the files ``episodes``."""
        self._memory = memory
        self._overview = Overview(memory) if memory is not None else None
        self.runs = [Run(folder) for folder in runs]
        self.files = [Transcripts(path) for path in episodes]
        self._isolation = isolation
        self._games: Games | None = None
        self._lock = threading.Lock()

    @property
    def has_memory(self) -> bool:
        """Whether there are environments to show."""
        return self._memory is not None

    @property
    def memory(self) -> Memory:
        """The memory.

        Raises:
            LookupError: if none is shown.
        """
        if self._memory is None:
            raise LookupError("no memory is shown here; start `spade view --memory DIR`")
        return self._memory

    @property
    def overview(self) -> Overview:
        """The memory's entries.

        Raises:
            LookupError: if no memory is shown.
        """
        if self._overview is None:
            raise LookupError("no memory is shown here; start `spade view --memory DIR`")
        return self._overview

    @property
    def games(self) -> Games:
        """The episodes played here; the sandbox is made when first needed."""
        from spade_envs.sandbox import Sandbox

        with self._lock:
            if self._games is None:
                self._games = Games(Sandbox(minimum_isolation=self._isolation, max_workers=32))
            return self._games

    def run(self, number: int) -> Run:
        """Return a run by its place among those shown.

        Raises:
            LookupError: if there is none.
        """
        if not 0 <= number < len(self.runs):
            raise LookupError(f"no run {number}: {len(self.runs)} are shown here")
        return self.runs[number]

    def sources(self) -> Iterator[tuple[str, str, Transcripts]]:
        """Yield (name in addresses, name for people, transcripts) of all that holds episodes."""
        for number, run in enumerate(self.runs):
            yield f"run-{number}", run.name, run.transcripts
        for number, file in enumerate(self.files):
            yield f"file-{number}", file.path.name, file

    def source(self, name: str) -> tuple[str, Transcripts]:
        """Return (name for people, transcripts) by the name in addresses.

        Raises:
            LookupError: if there is none.
        """
        for known, title, transcripts in self.sources():
            if known == name:
                return title, transcripts
        raise LookupError(f"no episodes called {name!r} are shown here")

    def episodes_of(self, record_id: str, env_id: str, most: int = 200) -> list[tuple[str, str, EpisodePlace]]:
        """Return the newest stored episodes of a record as (source, its name for people, place)."""
        found = []
        for name, title, transcripts in self.sources():
            transcripts.update()
            mine = [one for one in transcripts.episodes if one.key in (record_id, env_id)]
            found += [(name, title, one) for one in mine[-most:][::-1]]
        return found[:most]

    def close(self) -> None:
        """Stop the episodes, the sandbox's processes, and close the memory."""
        with self._lock:
            if self._games is not None:
                self._games.close()
                self._games.sandbox.close()
        if self._memory is not None:
            self._memory.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

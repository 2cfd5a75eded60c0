"""Folders of text files."""

from __future__ import annotations

from pathlib import Path

from spade_envs.corpus.document import CorpusError, Document
from spade_envs.corpus.index import IndexBuilder

TEXT_SUFFIXES = (".txt", ".md")


class FolderRows:
    """A folder of text files, read when they are drawn; ids are paths below the folder."""

    def __init__(self, path: Path, name: str, *, deduplicate: bool = True) -> None:
        """List the files; each is read once for its hash, none is kept."""
        self.name, self._folder = name, path
        builder, names = IndexBuilder(name, "file", deduplicate=deduplicate), list[str]()
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() not in TEXT_SUFFIXES or not file.is_file():
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
            if not text.strip():
                builder.skip(len(names), "empty file")
                continue
            relative = file.relative_to(path).as_posix()
            builder.read(f"{relative}\0{file.stat().st_size}\0".encode("utf-8", "replace"))
            builder.add(len(names), text)
            names.append(relative)
        index = builder.build()
        self._names = [names[int(number)] for number in index.numbers]
        self.skipped, self.fingerprint = index.skipped, index.fingerprint

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> Document:
        file = self._folder / self._names[index]
        try:
            return Document(self._names[index], file.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise CorpusError(f"corpus {self.name} changed while it was read: {error}; start again") from error

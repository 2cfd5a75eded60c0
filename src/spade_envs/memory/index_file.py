"""The cache of an index: a file that is replaced as a whole now and then, and a tail to which new vectors are appended.

Both are named after the embedder. Nothing of them is believed that a checksum does not confirm, and whoever finds
them missing, damaged or of another version makes them again from the database.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .embed import Embedder, Vectors

_LOG = logging.getLogger(__name__)
_FORMAT = 2
_ID_BYTES = 32
RECIPE = 1
"""Version of the text that is embedded (``lexical.words``); another one makes older files useless."""


@dataclass
class Cached:
    """What was found."""

    ids: list[str] = field(default_factory=list)
    index: bytes = b""  # as FAISS serialises it, with a vector for each of ``ids``
    tail_ids: list[str] = field(default_factory=list)
    tail: Vectors | None = None
    sound: bool = True  # False: something is missing or damaged, so write the whole file next time


class IndexFile:
    """The cache of one embedder's index in a folder."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.file = index_file(embedder, folder)
        self.tail_file = self.file.with_suffix(".tail")
        self._dimension = embedder.dimension
        self._header = {
            "format": _FORMAT,
            "recipe": RECIPE,
            "embedder": embedder.name,
            "dimension": embedder.dimension,
        }

    def read(self) -> Cached:
        """Return what is whole and ours; a tail without its file counts for nothing."""
        found = Cached()
        payload = self._payload()
        if payload is None:
            found.sound = False
            return found
        count, data = payload
        found.ids = [data[start : start + _ID_BYTES].hex() for start in range(0, _ID_BYTES * count, _ID_BYTES)]
        found.index = data[_ID_BYTES * count :]
        self._read_tail(found)
        return found

    def replace(self, ids: Sequence[str], index: bytes) -> bool:
        """Write the whole file and remove the tail; False if the folder cannot be written, which is no error."""
        payload = bytes.fromhex("".join(ids)) + index
        header = json.dumps(self._expected(payload, len(ids)))
        try:
            _replace(self.file, header.encode() + b"\n" + payload)
            # What another process appended meanwhile is lost with it, and embedded again by whoever misses it.
            self.tail_file.unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("index cache %s not written (%s); it will be made again when needed", self.file, error)
            return False
        return True

    def append(self, ids: Sequence[str], vectors: Vectors) -> bool:
        """Append to the tail in one write; False if the folder cannot be written."""
        entries = []
        for id, vector in zip(ids, vectors, strict=True):
            entry = bytes.fromhex(id) + vector.astype("<f4").tobytes()
            entries.append(entry + zlib.crc32(entry).to_bytes(4, "little"))
        try:
            with self.tail_file.open("ab") as file:
                head = b"" if file.tell() else json.dumps(self._header).encode() + b"\n"
                file.write(head + b"".join(entries))
        except OSError as error:
            _LOG.warning("index cache %s not written (%s); it will be made again when needed", self.tail_file, error)
            return False
        return True

    def remove(self) -> None:
        """Delete both files."""
        self.file.unlink(missing_ok=True)
        self.tail_file.unlink(missing_ok=True)

    def _read_tail(self, found: Cached) -> None:
        try:
            header, _, data = self.tail_file.read_bytes().partition(b"\n")
        except OSError:
            return
        try:
            ours = json.loads(header) == self._header
        except ValueError:
            ours = False
        size = _ID_BYTES + 4 * self._dimension + 4
        whole = 0
        if ours:
            while data[size * whole : size * (whole + 1)] and _is_whole(data[size * whole : size * (whole + 1)], size):
                whole += 1
        found.sound = ours and size * whole == len(data)
        if not found.sound:
            _LOG.warning("%s is damaged or of another version; using %d entries of it", self.tail_file, whole)
        entries = np.frombuffer(data[: size * whole], dtype=np.uint8).reshape(whole, size)
        found.tail_ids = [entry[:_ID_BYTES].tobytes().hex() for entry in entries]
        found.tail = np.ascontiguousarray(entries[:, _ID_BYTES:-4]).view("<f4").astype(np.float32)

    def _payload(self) -> tuple[int, bytes] | None:
        try:
            header, _, payload = self.file.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.warning("index cache %s not readable (%s); building it in memory", self.file, error)
            return None
        try:
            count = int(json.loads(header)["count"])
            whole = json.loads(header) == self._expected(payload, count)
        except (ValueError, KeyError, TypeError):  # no JSON, no UTF-8, another shape
            whole = False
        if not whole:
            _LOG.warning("index cache %s is damaged or of another version; building it again", self.file)
            return None
        return count, payload

    def _expected(self, payload: bytes, count: int) -> dict[str, object]:
        return {**self._header, "count": count, "sha256": hashlib.sha256(payload).hexdigest()}


def index_file(embedder: Embedder, folder: Path) -> Path:
    """Return where the index of this embedder is cached."""
    return folder / f"index-{re.sub(r'[^A-Za-z0-9_.-]', '_', embedder.name)}.faiss"


def _is_whole(entry: bytes, size: int) -> bool:
    return len(entry) == size and zlib.crc32(entry[:-4]).to_bytes(4, "little") == entry[-4:]


def _replace(file: Path, data: bytes) -> None:
    for left in file.parent.glob(f"{file.name}.*.tmp"):  # by a process that was killed while writing
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > 3600:
                left.unlink()
    temporary = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise

"""JSON lines that evaluators write, some of them cut in half by a kill, and what a checkout holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a file of JSON lines; lines that a kill cut in half are left out."""
    rows = []
    # Not splitlines(): it also splits at separators that JSON may have within a string.
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of JSON lines."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def checkout_hash(folder: Path, patterns: Iterable[str]) -> str:
    """Return a hash of what matters in a checkout: of the files that match ``patterns`` (as :meth:`Path.glob`)."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]

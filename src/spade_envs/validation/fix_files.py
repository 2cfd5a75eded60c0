"""Mending files of programs: what is mechanical, into a file beside the original."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spade_envs.source_text import fix_source
from spade_envs.validation.sources import find_source, iter_sources

SUFFIX = ".fixed.py"


@dataclass(frozen=True, slots=True)
class FileFix:
    """What was done to one program. ``path`` is where the mended source is, "" if there was nothing to mend."""

    label: str
    source: str
    mends: tuple[str, ...] = ()
    path: str = ""


def fix_files(paths: Iterable[str | Path], *, in_place: bool = False) -> Iterator[FileFix]:
    """Mend each program and write those that changed; files that an earlier call wrote are passed over.

    The mended program goes to ``NAME.fixed.py`` beside ``NAME.py``, or ``NAME.12.fixed.py`` for the twelfth entry of
    a JSON file. ``in_place`` overwrites the Python file itself (by a temporary file that replaces it).

    Raises:
        FileNotFoundError: if a path does not exist.
        ValueError: if a file is no JSON, or ``in_place`` is asked for one that is.
    """
    for label, text in iter_sources(paths, whole=True):
        if label.endswith(SUFFIX):
            continue
        fixed = fix_source(text)
        path = _write(label, fixed.source, in_place) if fixed.mends else ""
        yield FileFix(label, fixed.source, fixed.mends, path)


def fixed_source(label: str) -> str:
    """Return the mended source under a label of :func:`fix_files`.

    Raises:
        KeyError: if the file has no such entry any more.
    """
    return fix_source(find_source(label, whole=True)).source


def _write(label: str, source: str, in_place: bool) -> str:
    file = Path(label)
    if in_place and file.suffix != ".py":
        raise ValueError(f"--in-place can mend Python files only, {label} is none; leave it out to get {SUFFIX} files")
    name, _, number = file.name.rpartition(":") if file.suffix != ".py" and ":" in file.name else (file.name, "", "")
    stem = Path(name).stem + (f".{number}" if number else "")
    target = file if in_place else file.with_name(stem + SUFFIX)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.write_text(source, encoding="utf-8", errors="surrogatepass")
    if in_place:
        temporary.chmod(file.stat().st_mode)
    os.replace(temporary, target)
    return str(target)

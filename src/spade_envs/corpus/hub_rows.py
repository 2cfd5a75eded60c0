"""Hugging Face datasets, from the Hub or from a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from spade_envs.corpus.cache import keyed_place, written
from spade_envs.corpus.document import CorpusError
from spade_envs.corpus.json_rows import JsonRows
from spade_envs.hub_access import hub_or_cache

HUB = "hf:"
_SPEC = re.compile(r"(?P<name>[^:\[]+)(?::(?P<config>[^:\[]*))?(?::(?P<split>[^:\[]+))?(?:\[:(?P<limit>\d+)\])?\Z")


@dataclass(frozen=True, slots=True)
class HubSpec:
    """What ``hf:owner/name[:config][:split][[:rows]]`` says."""

    name: str
    config: str | None
    split: str
    limit: int | None


def parse_spec(text: str) -> HubSpec:
    """Read ``hf:owner/name[:config][:split][[:rows]]``; a folder may stand for owner/name.

    Raises:
        CorpusError: if ``text`` is something else.
    """
    match = _SPEC.match(text.removeprefix(HUB))
    if not match:
        raise CorpusError(f"expected hf:OWNER/NAME[:CONFIG][:SPLIT][[:ROWS]], such as hf:allenai/c4:en:train[:10000]; "
                          f"got {text!r}")  # fmt: skip
    limit = int(match["limit"]) if match["limit"] else None
    return HubSpec(match["name"], match["config"] or None, match["split"] or "train", limit)


def open_hub(source: str, fields: Sequence[str], *, deduplicate: bool = True, cache: Path | None = None) -> JsonRows:
    """Stream the rows of a dataset into the cache, once, and open them like any JSON lines.

    The copy is made again when the dataset changes: its key is the hash that ``datasets`` gives the version.

    Raises:
        CorpusError: if the dataset cannot be read, or there is no folder for the copy.
        ImportError: if ``datasets`` is not installed.
    """
    import datasets  # noqa: F401  # before the Hub may be found unreachable: it remembers that of its first import

    spec = parse_spec(source)
    folder = Path(spec.name).expanduser()
    unreachable = ""
    try:
        with nullcontext("") if folder.is_dir() else hub_or_cache() as unreachable:
            version, rows = _opened(spec, folder)
            place = keyed_place(f"{spec}\0{version}", "dataset jsonl", cache)
            if place is None:
                raise CorpusError(
                    f"corpus {source} needs a folder for its copy, and the cache folder cannot be written"
                )
            if not place.exists():
                with written(place) as temporary, temporary.open("w", encoding="utf-8") as file:
                    file.writelines(_lines(rows, spec.limit))
    except CorpusError:
        raise
    except Exception as error:  # datasets raises errors of many libraries
        if unreachable:
            raise CorpusError(
                f"corpus {source}: there is no folder {spec.name}, and the Hub cannot be reached ({unreachable}). Give "
                f"a JSONL or Parquet file or a folder of texts; or run `hf download {spec.name} --repo-type dataset "
                f"--local-dir FOLDER` where the Hub can be reached, and give hf:FOLDER"
            ) from error
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise CorpusError(f"corpus {source} cannot be read as a dataset: {said}") from error
    return JsonRows(place, source, fields, label=spec.name, deduplicate=deduplicate, cache=cache)


def _opened(spec: HubSpec, folder: Path) -> tuple[str, Iterable[Mapping[str, Any]]]:
    """Return what identifies the version of a dataset, and its rows."""
    import datasets

    if (folder / "state.json").is_file():  # what Dataset.save_to_disk writes
        stored = datasets.load_from_disk(str(folder))
        return stored._fingerprint, stored
    if (folder / "dataset_dict.json").is_file():
        splits = datasets.load_from_disk(str(folder))
        if spec.split not in splits:
            raise CorpusError(f"{spec.name} has no split {spec.split!r}; it has {', '.join(map(str, splits))}")
        return splits[spec.split]._fingerprint, splits[spec.split]
    builder = datasets.load_dataset_builder(spec.name, spec.config)
    return f"{builder.config_id} {builder.hash}", builder.as_streaming_dataset(split=spec.split)


def _lines(rows: Iterable[Mapping[str, Any]], limit: int | None) -> Iterable[str]:
    return (json.dumps(dict(row), default=str) + "\n" for row in islice(rows, limit))

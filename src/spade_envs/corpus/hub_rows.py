"""Hugging Face datasets, from the Hub or from a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from spade_envs.corpus.cache import keyed_place, written
from spade_envs.corpus.document import CorpusError
from spade_envs.corpus.json_rows import JsonRows

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
    import datasets

    spec = parse_spec(source)
    folder = Path(spec.name).expanduser()
    try:
        if (folder / "state.json").is_file():  # what Dataset.save_to_disk writes
            stored = datasets.load_from_disk(str(folder))
            version, rows = stored._fingerprint, stored
        elif (folder / "dataset_dict.json").is_file():
            splits = datasets.load_from_disk(str(folder))
            version, rows = splits[spec.split]._fingerprint, splits[spec.split]
        else:
            builder = datasets.load_dataset_builder(spec.name, spec.config)
            version = f"{builder.config_id} {builder.hash}"
            rows = builder.as_streaming_dataset(split=spec.split)
        place = keyed_place(f"{spec}\0{version}", "dataset jsonl", cache)
        if place is None:
            raise CorpusError(f"corpus {source} needs a folder for its copy, and the cache folder cannot be written")
        if not place.exists():
            with written(place) as temporary, temporary.open("w", encoding="utf-8") as file:
                file.writelines(_lines(rows, spec.limit))
    except CorpusError:
        raise
    except Exception as error:  # datasets raises errors of many libraries
        raise CorpusError(f"corpus {source} cannot be read as a dataset: {type(error).__name__}: {error}") from error
    return JsonRows(place, source, fields, label=spec.name, deduplicate=deduplicate, cache=cache)


def _lines(rows: Iterable[Mapping[str, Any]], limit: int | None) -> Iterable[str]:
    return (json.dumps(dict(row), default=str) + "\n" for row in islice(rows, limit))

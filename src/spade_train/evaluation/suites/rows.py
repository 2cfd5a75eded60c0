"""Rows of a benchmark: from a local file, or from the Hugging Face Hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spade_envs.hub_access import hub_or_cache
from spade_train.evaluation.protocol import EvaluationError


@dataclass(frozen=True, slots=True)
class HubData:
    """Where a data set lies on the Hub."""

    repository: str
    config: str | None = None
    split: str = "test"
    gated: bool = False
    files: tuple[str, ...] = ()  # instead of what the repository's own loader would take


def read_rows(suite: str, data: str | Path | None, hub: HubData, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows, from ``data`` (JSON lines or Parquet) if given, else from the Hub's cache or the Hub.

    Raises:
        EvaluationError: if they cannot be had; the message says which command or permission is needed.
    """
    rows = _local(suite, Path(data)) if data is not None else _remote(suite, hub)
    for number, row in enumerate(rows, 1):
        if missing := [name for name in fields if name not in row]:
            raise EvaluationError(
                f"{suite}, row {number}: expected the fields {', '.join(fields)}, {missing[0]!r} is missing"
            )
    if not rows:
        raise EvaluationError(f"{suite}: {data or hub.repository} has no rows")
    return rows


def fingerprint(rows: Sequence[dict[str, Any]]) -> str:
    """Return a hash of the rows: other questions are another benchmark."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _local(suite: str, path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise EvaluationError(f"{suite}: {path} does not exist; expected JSON lines or Parquet, see docs/evaluate.md")
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return list(pq.read_table(path).to_pylist())
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise EvaluationError(f"{path}, line {number}: expected a JSON object: {error}") from error
        if not isinstance(row, dict):
            raise EvaluationError(f"{path}, line {number}: expected a JSON object, got {type(row).__name__}")
        rows.append(row)
    return rows


def _remote(suite: str, hub: HubData) -> list[dict[str, Any]]:
    url = f"https://huggingface.co/datasets/{hub.repository}"
    other = f"or give a local file with --data {suite}=FILE (docs/evaluate.md has its format)"
    unreachable = ""
    try:
        import datasets  # before the Hub may be found unreachable: it remembers that of its first import

        with hub_or_cache() as unreachable:
            if hub.files:
                # Line by line: rows of tens of megabytes are more than table readers take.
                from huggingface_hub import hf_hub_download

                paths = [hf_hub_download(hub.repository, name, repo_type="dataset") for name in hub.files]
                return [row for path in paths for row in _local(suite, Path(path))]
            return [dict(row) for row in datasets.load_dataset(hub.repository, hub.config, split=hub.split)]
    except ImportError as error:
        raise EvaluationError(
            f"{suite} needs more packages ({error}): pip install 'spade-envs[hub]'; {other}"
        ) from error
    except Exception as error:  # of many libraries; each means that there are no rows
        permission = (
            f"the data set is gated: accept its terms at {url} and log in with `hf auth login`"
            if hub.gated
            else f"check that {url} can be reached"
        )
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        if unreachable:
            said = f"it is not in the local cache, and the Hub cannot be reached: {unreachable}"
        raise EvaluationError(f"{suite}: {hub.repository} cannot be loaded ({said}); {permission}, {other}") from error

"""Dataset cards: the README.md of a dataset with a YAML header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEADER = re.compile(r"\A---\n(.*?)\n---\s*\n", re.DOTALL)
_LICENCES = {  # names that people write → identifiers of the Hub
    "apache-2.0": "apache-2.0", "apache 2.0": "apache-2.0", "mit": "mit", "bsd-3-clause": "bsd-3-clause",
    "cc-by-4.0": "cc-by-4.0", "cc-by-sa-4.0": "cc-by-sa-4.0", "cc0-1.0": "cc0-1.0", "gpl-3.0": "gpl-3.0",
    "cc-by-nc-4.0": "cc-by-nc-4.0", "unlicense": "unlicense", "openrail": "openrail",
}  # fmt: skip

_LONGEST = 300  # characters of what a header says


@dataclass(frozen=True, slots=True)
class Card:
    """What the header of a card says of the whole dataset."""

    licence: str = ""
    name: str = ""


def read_card(path: Path) -> Card:
    """Read the header of a README.md; an empty card if there is none or it is no YAML."""
    import yaml

    try:
        match = _HEADER.match(path.read_text(encoding="utf-8", errors="replace"))
        values = yaml.safe_load(match[1]) if match else None
    except (OSError, yaml.YAMLError, ValueError, RecursionError):  # ValueError: dates and numbers that are none
        return Card()
    if not isinstance(values, Mapping):
        return Card()
    licence = values.get("license_name") or values.get("license") or ""
    if isinstance(licence, list):
        licence = licence[0] if licence else ""
    name = values.get("pretty_name", "")
    licence, name = (text if isinstance(text, str) else "" for text in (licence, name))
    return Card("" if licence == "unknown" else licence[:_LONGEST], name[:_LONGEST])


def write_card(name: str, summary: Mapping[str, Any], *, plays: bool) -> str:
    """Return the README.md of an export.

    Args:
        name: of the dataset.
        summary: of the manifest; ``by_licence``, ``by_kind``, ``by_skill`` and ``by_generator`` are counts.
        plays: whether there is a ``plays.parquet``.
    """
    import yaml

    licences: Counter[str] = Counter(summary["by_licence"])
    given = sorted(licence for licence in licences if licence)
    header: dict[str, Any] = {"license": "unknown"}
    if len(given) == 1 and not licences[""]:
        known = _LICENCES.get(given[0].lower())
        header = {"license": known} if known else {"license": "other", "license_name": given[0]}
    elif given:
        header = {"license": "other", "license_name": "per-environment"}
    header["pretty_name"] = name
    header["task_categories"] = ["reinforcement-learning"]
    header["tags"] = ["spade-envs", "environments", "synthetic", "code", "text-games"]
    header["size_categories"] = [_size(summary["n_games"])]
    header["configs"] = [
        {"config_name": "default", "default": True, "data_files": [{"split": "train", "path": "environments.parquet"}]}
    ]
    if plays:
        header["configs"].append({"config_name": "plays", "data_files": [{"split": "train", "path": "plays.parquet"}]})
    lines = [
        "---",
        yaml.safe_dump(header, sort_keys=False, allow_unicode=True).rstrip("\n"),
        "---",
        f"# {_plain(name)}",
        "",
        f"{summary['n_games']} text environments for language-model agents, each one Python class with `reset`, `step`",
        f"and a verifiable reward, written by models and validated by running. {summary['n_proven']} carry a",
        "`solution()` that was played to the maximal return; "
        f"{summary['n_played']} have play statistics (`win_rate`, `regret`).",
        "",
        *_counts("Kind", summary["by_kind"]),
        *_counts("Skill", summary["by_skill"]),
        *_counts("Generator", summary["by_generator"]),
        *_counts("Licence", summary["by_licence"]),
        "The licence of each environment is in its row; where none is given, none is known.",
        "",
        "## Use",
        "The programs are code by models: run them in a sandbox. `spade import` validates each one before it is used.",
        "```bash",
        "pip install spade-envs",
        "spade import FOLDER --memory pool          # this folder, or: spade pull OWNER/NAME --memory pool",
        "spade play ID --memory pool",
        "```",
        "```python",
        "from datasets import load_dataset",
        "",
        'rows = load_dataset("FOLDER_OR_OWNER/NAME", split="train")',
        'print(rows[0]["skill"], rows[0]["win_rate"], rows[0]["code"])',
        "```",
        "",
        "## Files",
        "| file | |",
        "|---|---|",
        "| `environments.parquet` | one row for each: `code`, `sha256`, `skill`, `hint`, statistics, report |",
        *(["| `plays.parquet` | one row for each episode: `id`, `hinted`, `return`, `run`, `step` |"] if plays else []),
        "| `manifest.json` | `summary` and `games`, one entry for each with its `path_in_dataset` |",
        "| `games/`, `environments/` | the programs as files: text games by number, tool use by run |",
    ]
    return "\n".join(lines) + "\n"


def _counts(title: str, counts: Mapping[str, int]) -> list[str]:
    rows = [f"| {_plain(name) or '–'} | {count} |" for name, count in counts.items()]
    return [f"| {title} | environments |", "|---|---|", *rows, ""]


def _plain(text: str) -> str:
    """Make foreign text one line that cannot break out of a table or a heading."""
    return " ".join(re.sub(r"[|<>`\[\]#\x00-\x1f\x7f-\x9f]+", " ", text)[:120].split())


def _size(count: int) -> str:
    for limit, words in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if count < limit:
            return words
    return "1M<n<10M"

"""Folders of prompt sets: finding, reading and checking their files, and copying one to edit it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

PROMPTS_FOLDER = Path(__file__).parent / "prompts"
_NANO_CONFIG = Path(__file__).parents[1] / "models" / "nano" / "config.json"

_KEYS = {
    "kind", "own_hint", "document_tokens", "exemplars", "negatives", "max_turns", "repairs", "repair",
    "skills", "validation", "duplicate", "play", "sampling", "draw", "faults", "demonstrations",
}  # fmt: skip
REPAIRS = ("mend", "anew")
"""How a refused program goes back: shown, for corrections, or as reasons alone, for another one."""
_SUFFIXES = (".toml", ".jinja", ".txt")


class PromptSetError(ValueError):
    """A prompt set is missing, incomplete or has a faulty template or setting."""


def available_prompt_sets() -> tuple[str, ...]:
    """The names of the prompt sets that come with the package."""
    return tuple(sorted(path.parent.name for path in PROMPTS_FOLDER.glob("*/set.toml")))


def find_prompt_set(name_or_folder: str | Path) -> Path:
    """Return the folder of a set that comes with the package (by name) or of one's own (by path).

    Raises:
        PromptSetError: if there is none; the message names the file that is missing.
    """
    own = Path(name_or_folder)
    for folder in (PROMPTS_FOLDER / str(name_or_folder), own):
        if (folder / "set.toml").is_file():
            return folder.resolve()
    if own.is_dir():
        raise PromptSetError(
            f"prompt set {own} lacks set.toml; `spade generate --copy-prompts FOLDER` makes a whole set"
        )
    raise PromptSetError(
        f"no prompt set {str(name_or_folder)!r}: expected one of {', '.join(available_prompt_sets())}, "
        f"or a folder with a set.toml"
    )


def default_prompt_set(model: str, kind: str = "game") -> str:
    """Return the name of the prompt set for ``model`` where none is named.

    The embedded model knows its own set only, as an adapter of it or a merged copy too.

    Args:
        model: its name, as :func:`spade_envs.models.load_model` takes it, or its folder.
        kind: of the environments, "game" or "tool_use".
    """
    if model == "nano" or _of_nano(Path(model.removeprefix("hf:"))):
        return "nano"
    return "tool_use" if kind == "tool_use" else "games"


def _of_nano(folder: Path) -> bool:
    adapter, config = folder / "adapter_config.json", folder / "config.json"
    try:
        if adapter.is_file():
            base = Path(str(json.loads(adapter.read_text(encoding="utf-8")).get("base_model_name_or_path")))
            return (base.parent.name, base.name) == ("models", "nano") or _of_nano(base)
        if config.is_file():
            found, own = (json.loads(file.read_text(encoding="utf-8")) for file in (config, _NANO_CONFIG))
            return all(found.get(key) == own[key] for key in ("model_type", "hidden_size", "vocab_size"))
    except (OSError, ValueError, AttributeError, RecursionError):  # loading the model says what is wrong with it
        pass
    return False


def copy_prompt_set(name_or_folder: str | Path, target: str | Path) -> Path:
    """Copy the files of a prompt set, and the description of such files, into the new folder ``target``.

    Raises:
        PromptSetError: if there is no such set, or ``target`` holds anything already.
    """
    source, folder = find_prompt_set(name_or_folder), Path(target)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PromptSetError(f"{folder} is there already and not empty; choose a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    shared = [path for path in PROMPTS_FOLDER.iterdir() if path.suffix in (".jinja", ".md")]
    for path in (*shared, *sorted(source.iterdir())):
        if path.suffix in (*_SUFFIXES, ".md"):
            shutil.copyfile(path, folder / path.name)
    return folder.resolve()


def read_settings(path: Path) -> dict[str, Any]:
    """Read a ``set.toml``.

    Raises:
        PromptSetError: if it is no TOML, has a setting that is not known, or no skill.
    """
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PromptSetError(f"{path}: {error}") from error
    if unknown := sorted(set(settings) - _KEYS):
        raise PromptSetError(f"{path}: unknown setting {', '.join(unknown)}; known are {', '.join(sorted(_KEYS))}")
    if (repair := settings.get("repair", REPAIRS[0])) not in REPAIRS:
        raise PromptSetError(f"{path}: repair must be {' or '.join(map(repr, REPAIRS))}, got {repair!r}")
    if not settings.get("skills"):
        raise PromptSetError(f"{path}: a table [skills] with at least one skill is needed")
    for name, table in settings.get("draw", {}).items():
        weights = list(table.values()) if isinstance(table, dict) else []
        sound = all(isinstance(weight, int | float) and weight >= 0 for weight in weights)
        if not sound or not any(weights):
            raise PromptSetError(f"{path}, table [draw.{name}]: expected weights that are not all 0, got {table!r}")
    return settings


def read_text(path: Path, *, needed: bool = True) -> str:
    """Return a file of a set but for its last line end; "" if it is not there and not needed.

    Raises:
        PromptSetError: if a file that is needed is missing.
    """
    if not path.is_file():
        if not needed:
            return ""
        raise PromptSetError(f"prompt set {path.parent} lacks {path.name}; prompts/README.md lists the files.")
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise PromptSetError(f"{path}: expected UTF-8: {error}") from error


def fingerprint(folder: Path) -> str:
    """Return a word that changes with any file that the prompts come from."""
    digest = hashlib.blake2b(digest_size=16)
    files = [path for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES]
    files += sorted(PROMPTS_FOLDER.glob("*.jinja"))  # used where a set has none of its own
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

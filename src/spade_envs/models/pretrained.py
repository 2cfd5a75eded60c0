"""Reading models and tokenizers by transformers: from a directory, the Hub's cache, or the Hub, in this order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spade_envs.hub_access import hub_or_cache, hub_unreachable
from spade_envs.models.base import ModelError

_FAULTS = (OSError, ValueError, KeyError, ImportError, RuntimeError)
"""What transformers raises for files that are missing, damaged, or of a kind that it does not know."""

_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?\Z", re.ASCII)


def from_pretrained(factory: Any, source: str, **options: Any) -> Any:
    """Return ``factory.from_pretrained(source, …)``; the Hub is asked only if neither disk nor cache has it.

    Args:
        factory: such as ``transformers.AutoTokenizer``.
        source: a directory, or ``owner/name`` of a model on the Hub.
        options: further arguments.

    Raises:
        ModelError: if it cannot be had or does not load; the message says what to do.
    """
    offline = {**options, "local_files_only": True}
    if Path(source).is_dir():
        if not any((Path(source) / name).is_file() for name in ("config.json", "adapter_config.json")):
            raise ModelError(f"directory {source} holds no model: it has neither config.json nor adapter_config.json")
        try:
            return factory.from_pretrained(source, **offline)
        except _FAULTS as error:
            raise ModelError(f"directory {source} does not hold a loadable model: {_first_line(error)}") from error
    _check_name(source)
    try:
        return factory.from_pretrained(source, **offline)
    except (OSError, ValueError) as error:
        here = error
    with hub_or_cache() as unreachable:
        if unreachable:
            raise _missing(source, unreachable, here) from here
        try:
            return factory.from_pretrained(source, **options)
        except _FAULTS as error:
            raise ModelError(
                f"model {source!r} is no directory, is not in the local Hugging Face cache, and the Hub did not give "
                f"it ({_first_line(error)}). Check the name; a gated model needs `hf auth login`."
            ) from error


def check_obtainable(source: str) -> None:
    """See that a model can be had, without loading it: for libraries that would look for it at length.

    Raises:
        ModelError: if ``source`` is no directory and not in the Hub's cache, and the Hub cannot be reached.
    """
    if Path(source).is_dir():
        return
    _check_name(source)
    if not _cached(source) and (unreachable := hub_unreachable()):
        raise _missing(source, unreachable)


def _missing(source: str, unreachable: str, found: Exception | None = None) -> ModelError:
    from huggingface_hub import constants

    if _cached(source):
        return ModelError(
            f"model {source!r} is not whole in the local Hugging Face cache, or does not load"
            f"{f' ({_first_line(found)})' if found else ''}, and the Hub cannot be reached ({unreachable}). Run "
            f"`hf download {source}` where it can."
        )
    return ModelError(
        f"model {source!r} is no directory and is not in the local Hugging Face cache ({constants.HF_HUB_CACHE}), and "
        f"the Hub cannot be reached ({unreachable}). Give the directory of a model, or nano, or, where a model is only "
        f"asked, an endpoint (openai:NAME with --base-url); or run `hf download {source}` where the Hub can be "
        f"reached, and bring that cache here (HF_HOME names its folder)."
    )


def _check_name(source: str) -> None:
    """Raise ModelError for what can only be meant as a path."""
    if not _NAME.match(source):
        raise ModelError(f"model {source!r} is no directory, and no name of a model on the Hub (OWNER/NAME)")


def _cached(source: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(source, "config.json"), str)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]

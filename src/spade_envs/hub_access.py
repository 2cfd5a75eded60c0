"""Whether the Hugging Face Hub can be reached: asked once, where its libraries would try for half a minute, aloud."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NUMBER = re.compile(r"\[Errno -?\d+\] ")
_SECONDS = 5.0  # for one address of the Hub's name


def hub_unreachable(endpoint: str | None = None) -> str:
    """Say why the Hub cannot be asked; "" if it can. Any answer counts: what is there, the libraries find out.

    Args:
        endpoint: address of another Hub than the one of HF_ENDPOINT.

    Raises:
        ImportError: if huggingface_hub is not installed.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set"
    address = endpoint or constants.ENDPOINT
    try:
        get_session().head(address, timeout=_SECONDS)
    except Exception as error:  # of the network, as the HTTP library of huggingface_hub's version has it
        said = (str(error).strip().splitlines() or [""])[0] or type(error).__name__
        return f"{address} does not answer: {_NUMBER.sub('', said)}"
    return ""


@contextmanager
def hub_or_cache(endpoint: str | None = None) -> Iterator[str]:
    """Give why the Hub cannot be reached, "" if it can; in the context its libraries neither retry in vain nor aloud.

    While the Hub cannot be reached they are in their own offline mode: what the cache holds is found at once.

    Args:
        endpoint: see :func:`hub_unreachable`.

    Raises:
        ImportError: if huggingface_hub is not installed.
    """
    from huggingface_hub import constants

    why = hub_unreachable(endpoint)
    switches: list[Any] = [constants, *filter(None, [sys.modules.get("datasets.config")])]
    before = [module.HF_HUB_OFFLINE for module in switches]
    loggers = [logging.getLogger(name) for name in ("huggingface_hub", "datasets")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        if why:
            for module in switches:
                module.HF_HUB_OFFLINE = True
        yield why
    finally:
        for module, value in zip(switches, before):
            module.HF_HUB_OFFLINE = value
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)

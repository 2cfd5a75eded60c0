"""Templates of the pages. Everything is escaped but what our own functions return as ``Markup``."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from spade_envs.view import texts

FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Return the templates' environment."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "shown": texts.shown,
        "as_json": texts.as_json,
        "number": texts.number,
        "interval": texts.interval,
        "date": texts.date,
    }
    return made


def render(template: str, **values: Any) -> str:
    """Return a page or a part of one; lone surrogates, which no encoding can say, are replaced."""
    return environment().get_template(template).render(values).encode("utf-8", "replace").decode()

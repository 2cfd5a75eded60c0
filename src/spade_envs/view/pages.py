"""What all pages share: the frame around them, values in addresses, forms."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from spade_envs.view.rendering import render
from spade_envs.view.state import View

MOST_BYTES = 1 << 20
"""Of a form that is sent."""


class Pages:
    """A group of pages over one view."""

    def __init__(self, view: View) -> None:
        self.view = view

    def page(self, request: Request, template: str, *, title: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page in its frame."""
        return HTMLResponse(render(template, **frame(request, self.view), title=title, **values), status)

    def part(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """Return a part of a page, for the script to put in."""
        return HTMLResponse(render(template, base=base(request), **values))


def base(request: Request) -> str:
    """Return what all addresses begin with: the token."""
    return str(request.scope.get("root_path", ""))


def frame(request: Request, view: View) -> dict[str, Any]:
    """Return the values of the frame around every page."""
    path = request.scope["path"].removeprefix(base(request))
    return {
        "base": base(request),
        "path": path,
        "has_memory": view.has_memory,
        "runs": [(number, run.name) for number, run in enumerate(view.runs)],
    }


def go(request: Request, path: str) -> RedirectResponse:
    """Send the browser to another page, after a form."""
    return RedirectResponse(f"{base(request)}{path}", status_code=303)


async def form(request: Request) -> dict[str, str]:
    """Return the values of a form that was sent.

    Raises:
        ValueError: if it is larger than a megabyte.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError(f"a form has at most {MOST_BYTES:,} bytes")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=500))


def whole(text: str | None, default: int) -> int:
    """Return a whole number from an address or a form; ``default`` where it says none."""
    try:
        value = int(text or "")
    except ValueError:
        return default
    return value if abs(value) < 2**53 else default

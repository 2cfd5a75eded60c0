"""The application: all pages behind the guard."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from spade_envs.memory import StoreError
from spade_envs.sandbox.types import ProgramError, SandboxError
from spade_envs.view.environment_pages import EnvironmentPages
from spade_envs.view.guard import Guard
from spade_envs.view.pages import Pages, go
from spade_envs.view.pool_pages import PoolPages
from spade_envs.view.rendering import FOLDER
from spade_envs.view.run_pages import RunPages
from spade_envs.view.state import View

_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (LookupError, 404, "Not found"),
    (ValueError, 400, "This cannot be done"),
    (ProgramError, 400, "The program cannot be run"),
    (SandboxError, 503, "The sandbox cannot run programs"),
    (StoreError, 503, "The memory cannot be read"),
)


def make_app(view: View, token: str, hosts: Iterable[str]) -> Guard:
    """Return the application that shows ``view``.

    Args:
        view: what is shown; it stays the caller's to close.
        token: what every address begins with.
        hosts: the Host headers to answer to, such as ``127.0.0.1:8000``.
    """
    pages = Pages(view)

    def start(request: Request) -> Response:
        return go(request, "/pool" if view.has_memory else "/runs")

    def failed(request: Request, error: Exception) -> Response:
        status, title = next((code, words) for kind, code, words in _STATUS if isinstance(error, kind))
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        return pages.page(request, "error.html.jinja", title=title, status=status, message=str(message))

    def refused(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        words = error.detail if isinstance(error, HTTPException) else "error"
        return pages.page(request, "error.html.jinja", title=words, status=code, message="")

    app = Starlette(
        routes=[
            Route("/", start),
            *PoolPages(view).routes(),
            *EnvironmentPages(view).routes(),
            *RunPages(view).routes(),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers={**{kind: failed for kind, _, _ in _STATUS}, HTTPException: refused},
    )
    return Guard(app, token, hosts)

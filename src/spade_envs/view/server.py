"""The server: a socket on the loopback, an address with a secret in it, and uvicorn behind it."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable

import uvicorn

from spade_envs.view.app import make_app
from spade_envs.view.state import View

LOOPBACK = "127.0.0.1"


class PortInUse(OSError):
    """Another program listens there; name another port, or none."""


def listen(port: int) -> socket.socket:
    """Return a socket that listens on the loopback, on any free port if ``port`` is 0.

    Raises:
        PortInUse: if another program has it.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
        found.listen(128)  # who comes before the server is up waits
    except OSError as error:
        found.close()
        raise PortInUse(
            f"cannot listen on port {port} of {LOOPBACK}: {error.strerror}; name another --port, or leave it out for a "
            f"free one"
        ) from error
    return found


def serve(view: View, *, port: int = 0, ready: Callable[[str], None]) -> None:
    """Show ``view`` until interrupted.

    Args:
        view: what is shown.
        port: on the loopback; 0 takes a free one.
        ready: called with the address once the server listens.
    """
    with listen(port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = make_app(view, token, [f"{LOOPBACK}:{port}", f"localhost:{port}"])
        config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", server_header=False)
        server = uvicorn.Server(config)
        threading.Thread(target=_warm, args=(view,), daemon=True).start()
        ready(f"http://{LOOPBACK}:{port}/{token}/")
        server.run(sockets=[listening])


def _warm(view: View) -> None:
    """Read what the first pages need while the person opens the address."""
    if view.has_memory:
        view.overview.entries()

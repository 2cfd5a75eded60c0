"""Who may ask: the address with the token, from a page of this server, under a name of this machine.

The server listens on the loopback, which other users of the machine and other pages of the browser reach too. The token
keeps them out; the check of the ``Host`` header stops a foreign name that was made to point to 127.0.0.1 (DNS
rebinding); the check of ``Origin`` stops foreign pages from sending forms; the content policy allows no script and no
style but our two files, so that a text which slipped through unescaped could do nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer. No cache: what a page shows is on this machine already."""


class Guard:
    """ASGI middleware in front of all pages; takes the token off the path."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str]) -> None:
        """Let requests through whose path begins with ``/token/`` and whose Host header is one of ``hosts``."""
        self._app, self._token, self._hosts = app, token.encode(), {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it without a word about why."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal:
            await _answer(send, *refusal)
            return
        root = f"/{self._token.decode()}"

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app({**scope, "root_path": scope.get("root_path", "") + root}, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        found: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            found.setdefault(name, []).append(value.decode("latin-1"))
        hosts = found.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 400, "This server answers to its own address only."
        first = scope["path"].split("/", 2)
        if len(first) < 3 or not secrets.compare_digest(first[1].encode("utf-8", "replace"), self._token):
            return 404, "Not found. Open the address that `spade view` printed."
        if scope["method"] not in ("GET", "HEAD"):
            origins, sites = found.get(b"origin", []), found.get(b"sec-fetch-site", [])
            if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
                return 403, "Forms are taken from this server's own pages only."
            if any(site not in ("same-origin", "none") for site in sites):
                return 403, "Forms are taken from this server's own pages only."
        return None


async def _answer(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    headers += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{words}\n".encode()})

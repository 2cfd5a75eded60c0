"""One address for several endpoints, by the name of the model: for evaluators that know a single address."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_SECONDS = 1800.0


class Route(NamedTuple):
    """Where requests for one name go, and under which name and key they are asked there."""

    base_url: str
    model: str
    key: str = ""


@contextlib.contextmanager
def router(routes: Mapping[str, Route]) -> Iterator[str]:
    """Serve ``routes`` on this machine while the context lasts; gives the base URL. Bodies pass but for the name."""
    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route as Path

    async def forward(request: Request) -> Response:
        try:
            body: dict[str, Any] = json.loads(await request.body())
            route = routes[body["model"]]
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": {"message": f"expected one of the models {', '.join(routes)}"}}, 404)
        headers = {"Authorization": f"Bearer {route.key}"} if route.key else {}
        local = "://127.0.0.1" in route.base_url or "://localhost" in route.base_url
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=not local) as client:
            try:
                answer = await client.post(
                    f"{route.base_url}/chat/completions", json={**body, "model": route.model}, headers=headers
                )
            except httpx.HTTPError as error:
                return JSONResponse({"error": {"message": f"{type(error).__name__}: {error}"}}, 502)
        return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))

    listening = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Path("/v1/chat/completions", forward, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="router", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(10.0)
        listening.close()

"""One address for several endpoints, by the name of the model: for evaluators that know a single address."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spade_envs.source_text.thoughts import without_thoughts

_SECONDS = 3600.0


class Route(NamedTuple):
    """Where requests for one name go, and under which name and key they are asked there."""

    base_url: str
    model: str  # "": under the name that was asked for
    key: str = ""
    plain: bool = False  # whether thoughts are taken out of the replies, for evaluators that know none


@contextlib.contextmanager
def router(routes: Mapping[str, Route]) -> Iterator[str]:
    """Serve ``routes`` on this machine while the context lasts; gives the base URL. Bodies pass but for the name.

    The route of the name "" takes what has none of its own.
    """
    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route as Path

    async def forward(request: Request) -> Response:
        try:
            body: dict[str, Any] = json.loads(await request.body())
            route = routes.get(body["model"]) or routes[""]
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": {"message": f"expected one of the models {', '.join(routes)}"}}, 404)
        headers = {"Authorization": f"Bearer {route.key}"} if route.key else {}
        local = "://127.0.0.1" in route.base_url or "://localhost" in route.base_url
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=not local) as client:
            try:
                answer = await client.post(
                    f"{route.base_url}/chat/completions",
                    json={**body, "model": route.model or body["model"]},
                    headers=headers,
                )
            except httpx.HTTPError as error:
                return JSONResponse({"error": {"message": f"{type(error).__name__}: {error}"}}, 502)
        content = _plain(answer.content) if route.plain and answer.status_code == 200 else answer.content
        return Response(content, answer.status_code, media_type=answer.headers.get("content-type"))

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


def _plain(answer: bytes) -> bytes:
    """Return an answer without the thoughts in its messages, which are texts at least where they call no tool."""
    try:
        body = json.loads(answer)
        for choice in body["choices"]:
            message = choice["message"]
            text = without_thoughts(message.get("content") or "").strip()
            message["content"] = text or (None if message.get("tool_calls") else "")
    except (ValueError, KeyError, TypeError, AttributeError):  # no completion: the evaluator's to judge
        return answer
    return json.dumps(body).encode()

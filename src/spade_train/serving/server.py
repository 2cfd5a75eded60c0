"""The endpoint: chat completions with tool calls, the list of models, health."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spade_envs.models.base import Completion, Sampling
from spade_envs.models.chat_template import TOO_LONG
from spade_envs.models.transformers import TransformersModel
from spade_train.serving.batcher import Answers, Job
from spade_train.serving.dialogue import BadRequest, as_text, read_messages, read_reply, read_tools

_MOST_BODY = 32 << 20
_CLIENT_GONE = 499  # as nginx has it; nobody reads it
_LOOK_SECONDS = 1.0


def make_app(model: TransformersModel, batcher: Answers, names: Sequence[str], default_tokens: int) -> Starlette:
    """Return the application.

    Args:
        model: for the question whether its template takes tools.
        batcher: answers.
        names: under which the model is asked for; the first is shown.
        default_tokens: of a reply where the request has no bound.
    """

    async def completions(request: Request) -> Response:
        try:
            body = await _body(request)
            if (asked := body.get("model")) not in names:
                return _error(404, f"there is no model {asked!r} here; it serves {', '.join(names)}", "model_not_found")
            tools = read_tools(body.get("tools")) if body.get("tool_choice") != "none" else []
            messages = read_messages(body.get("messages"))
            if not model.native_tools:
                messages, shown = as_text(messages, tools), []
            else:
                shown = tools
            job = Job(messages, shown, _sampling(body, default_tokens))
        except BadRequest as error:
            return _error(400, str(error), "invalid_request_error")
        try:
            completion = await _while_wanted(request, batcher.submit(job))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return _error(500, f"{type(error).__name__}: {error}", "internal_error")
        if completion is None:
            return Response(status_code=_CLIENT_GONE)
        if completion.error:
            # The code by which clients tell a prompt that is too long from a request that is wrong.
            long = completion.error.startswith(TOO_LONG)
            return _error(400, completion.error, "context_length_exceeded" if long else "invalid_request_error")
        answer = _answer(completion, tools, names[0])
        return _streamed(answer) if body.get("stream") else JSONResponse(answer)

    async def models(_: Request) -> Response:
        entries = [{"id": name, "object": "model", "created": 0, "owned_by": "spade"} for name in names]
        return JSONResponse({"object": "list", "data": entries})

    async def health(_: Request) -> Response:
        return Response(status_code=200)

    return Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
        ]
    )


async def _while_wanted(request: Request, reply: Future[Completion]) -> Completion | None:
    """Wait for a reply, and drop it, returning None, if the client leaves before."""
    waiting = asyncio.ensure_future(asyncio.wrap_future(reply))
    while not (await asyncio.wait({waiting}, timeout=_LOOK_SECONDS))[0]:
        if await request.is_disconnected():
            waiting.cancel()
            return None
    return await waiting


async def _body(request: Request) -> dict[str, Any]:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _MOST_BODY:
            raise BadRequest(f"a request of more than {_MOST_BODY >> 20} MiB")
    try:
        body = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    if body.get("n") not in (None, 1):
        raise BadRequest("n must be 1: ask several times, with seeds of their own")
    return body


def _sampling(body: dict[str, Any], default_tokens: int) -> Sampling:
    tokens = body.get("max_completion_tokens") or body.get("max_tokens") or default_tokens
    temperature, top_p = body.get("temperature"), body.get("top_p")
    seed = body.get("seed")
    try:
        sampling = Sampling(
            max_tokens=int(tokens),
            temperature=1.0 if temperature is None else float(temperature),
            top_p=1.0 if top_p is None else float(top_p),
            seed=secrets.randbits(62) if seed is None else int(seed),
        )
    except (TypeError, ValueError) as error:
        raise BadRequest(f"max_tokens, temperature, top_p and seed must be numbers: {error}") from error
    if sampling.max_tokens < 1 or not 0 <= sampling.temperature <= 100 or not 0 < sampling.top_p <= 1:
        raise BadRequest("max_tokens must be at least 1, temperature at least 0, top_p in (0, 1]")
    return sampling


def _answer(completion: Completion, tools: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    text, calls = read_reply(completion.text, tools)
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        message["tool_calls"] = calls
    used = {"prompt_tokens": completion.prompt_tokens, "completion_tokens": completion.completion_tokens}
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": name,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else completion.finish_reason}
        ],
        "usage": {**used, "total_tokens": completion.prompt_tokens + completion.completion_tokens},
    }


def _streamed(answer: dict[str, Any]) -> Response:
    """The whole answer as one event, for clients that insist on a stream."""
    choice = answer["choices"][0]
    message = dict(choice["message"])
    if "tool_calls" in message:
        message["tool_calls"] = [{"index": place, **call} for place, call in enumerate(message["tool_calls"])]
    chunk = {
        **{key: answer[key] for key in ("id", "created", "model", "usage")},
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": message, "finish_reason": choice["finish_reason"]}],
    }
    return Response(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", media_type="text/event-stream")


def _error(status: int, message: str, code: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": code, "code": code}}, status_code=status)

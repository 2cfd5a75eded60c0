"""Models behind an OpenAI-compatible endpoint (OpenAI, vLLM, SGLang, llama.cpp, Ollama, …), by httpx.

The key is read from the environment and goes nowhere but into the Authorization header: not into logs, errors,
records or ``repr``. Redirects are not followed, since they could carry it elsewhere.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import os
import random
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from spade_envs.models.base import Completion, Conversation, ModelError, Sampling

logger = logging.getLogger(__name__)

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_RETRIES_UNREACHED = 2
_MAX_BODY = 32 << 20  # bytes of one answer
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds
_DROPPABLE = ("seed", "top_p", "temperature")  # parameters that some servers refuse


@dataclass(slots=True)
class Usage:
    """What was asked of an endpoint so far."""

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Failed(Exception):
    """One request failed; ``pause`` is what the server asked for, in seconds."""

    def __init__(self, reason: str, *, retry: bool, pause: float | None = None, unreachable: bool = False) -> None:
        self.retry, self.pause, self.unreachable = retry, pause, unreachable
        super().__init__(reason)


class OpenAIModel:
    """An endpoint's model as a :class:`~spade_envs.models.base.ChatModel`."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        concurrency: int = 16,
        retries: int = 6,
        request_seconds: float = 300.0,
        total_seconds: float = 900.0,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            model: the model's name at the endpoint.
            base_url: e.g. ``http://localhost:8000/v1``; else OPENAI_BASE_URL, else OpenAI's own.
            concurrency: most requests at once.
            retries: most repetitions of one request.
            request_seconds: wall-clock bound on one request, however slowly it trickles.
            total_seconds: bound on one completion with all its repetitions and pauses.

        Raises:
            ModelError: if the URL is no URL, or OpenAI's own endpoint is meant and there is no key.
        """
        url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ModelError(f"expected a base URL such as http://localhost:8000/v1, got {url.split('@')[-1]!r}")
        if parts.username or parts.password:
            raise ModelError("the base URL must not hold a user name or password; set OPENAI_API_KEY instead")
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not self._key and url == DEFAULT_BASE_URL:
            raise ModelError("no key for api.openai.com: set OPENAI_API_KEY, or give the base URL of another server")
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelError("OPENAI_API_KEY holds characters that cannot stand in a header; set it again")
        self._model, self._url = model, url
        self._concurrency, self._retries = concurrency, retries
        self._request_seconds, self._total_seconds = request_seconds, total_seconds
        self._trust_env = not _is_loopback(parts.hostname)  # a proxy must not stand before a local server
        self._tokens_field = "max_tokens"
        self._dropped: set[str] = set()
        self._reached = False
        self.usage = Usage()

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self._model

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        """Return one completion for each conversation, in order; see :class:`ChatModel`."""
        return _run(self._all(conversations, sampling))

    def close(self) -> None:
        """Nothing is held between calls."""

    async def _all(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        """Ask for everything at once, within the bound; after an error or an interrupt drop what is under way."""
        slots = asyncio.Semaphore(self._concurrency)
        async with httpx.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx.Timeout(self._request_seconds, connect=min(10.0, self._request_seconds), pool=None),
            limits=httpx.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency),
            follow_redirects=False,
            trust_env=self._trust_env,
        ) as client:
            tasks = [
                asyncio.create_task(self._one(client, slots, conversation, index, sampling))
                for index, conversation in enumerate(conversations)
            ]
            try:
                return list(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(
        self,
        client: httpx.AsyncClient,
        slots: asyncio.Semaphore,
        conversation: Conversation,
        index: int,
        sampling: Sampling,
    ) -> Completion:
        """One completion with its repetitions."""
        rng = random.Random(f"{sampling.seed}/{index}")
        seed = rng.getrandbits(31)  # replies to equal conversations differ, and do so again next time
        attempt = 0
        async with slots:
            deadline = time.monotonic() + self._total_seconds
            while True:
                try:
                    return await self._request(client, self._body(conversation, sampling, seed), deadline)
                except _Failed as failure:
                    pause = failure.pause
                    if pause is None:
                        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * rng.uniform(0.5, 1.0)
                    attempt += 1
                    out_of_time = time.monotonic() + pause >= deadline
                    # A server that never answered is more likely misspelt than about to come back.
                    few = failure.unreachable and not self._reached
                    retries = min(self._retries, _RETRIES_UNREACHED) if few else self._retries
                    if not failure.retry or attempt > retries or out_of_time:
                        return self._given_up(failure, attempt, out_of_time)
                    self.usage.retries += 1
                    logger.info("model %s: %s; again in %.1f s", self._model, failure, pause)
                    await asyncio.sleep(pause)

    def _given_up(self, failure: _Failed, attempts: int, out_of_time: bool) -> Completion:
        if failure.unreachable:
            raise ModelError(
                f"the endpoint {self._url} cannot be reached ({failure}); start the server or correct the "
                f"base URL (option or OPENAI_BASE_URL)"
            ) from failure
        tried = f" (tried {attempts} times{', out of time' if out_of_time and failure.retry else ''})"
        return Completion("", finish_reason="error", error=f"{failure}{tried if attempts > 1 else ''}")

    def _body(self, conversation: Conversation, sampling: Sampling, seed: int) -> dict[str, Any]:
        body = {
            "model": self._model,
            "messages": [dict(message) for message in conversation],
            self._tokens_field: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": seed,
        }
        return {key: value for key, value in body.items() if key not in self._dropped}

    async def _request(self, client: httpx.AsyncClient, body: dict[str, Any], deadline: float) -> Completion:
        self.usage.requests += 1
        status, headers, content = await self._send(client, body, deadline)
        self._reached = True
        if status == 200:
            return self._read(content)
        message = self._safe(_error_message(content))
        said = f"HTTP {status}{': ' + message if message else ''}"
        if status in (401, 403):
            raise ModelError(
                f"the endpoint {self._url} refused the key ({said}); "
                + ("check OPENAI_API_KEY" if self._key else "set OPENAI_API_KEY")
            )
        if status == 404:
            raise ModelError(
                f"the endpoint {self._url} knows no model {self._model!r}, or no path /chat/completions ({said}); "
                f"check the name (GET {self._url}/models lists them) and that the base URL ends as in …/v1"
            )
        if 300 <= status < 400:
            raise ModelError(f"the endpoint {self._url} redirects ({said}); give the final base URL")
        if status == 402 or "insufficient_quota" in message:
            raise ModelError(f"the account at {self._url} has no quota left ({said})")
        if status == 400 and self._adapt(message, body):
            raise _Failed(said, retry=True, pause=0.0)
        raise _Failed(said, retry=status in _RETRIED, pause=_retry_after(headers))

    async def _send(
        self, client: httpx.AsyncClient, body: dict[str, Any], deadline: float
    ) -> tuple[int, httpx.Headers, bytes]:
        """Send one request and read the whole answer within the request's time."""
        parts, size = [], 0
        late = f"no whole answer in {self._request_seconds:g} s"
        try:
            async with (
                asyncio.timeout(min(self._request_seconds, max(0.05, deadline - time.monotonic()))),
                client.stream("POST", f"{self._url}/chat/completions", json=body) as answer,
            ):
                async for part in answer.aiter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > _MAX_BODY:
                        raise _Failed(f"an answer of more than {_MAX_BODY >> 20} MiB", retry=False)
                return answer.status_code, answer.headers, b"".join(parts)
        except TimeoutError as error:
            raise _Failed(late, retry=True) from error
        except httpx.ConnectError as error:
            raise _Failed(self._safe(str(error)) or "no connection", retry=True, unreachable=True) from error
        except httpx.ConnectTimeout as error:
            raise _Failed("no connection in time", retry=True, unreachable=True) from error
        except httpx.TimeoutException as error:
            raise _Failed(late, retry=True) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Failed(f"the answer broke off: {self._safe(str(error))}", retry=True) from error
        except httpx.InvalidURL as error:
            raise ModelError(f"the base URL {self._url} is not usable: {error}") from error

    def _read(self, content: bytes) -> Completion:
        """Take the reply out of a chat completion object."""
        try:
            answer = json.loads(content)
            choice = answer["choices"][0]
            text = _text(choice["message"].get("content"))
            usage = answer.get("usage") or {}
            prompt_tokens = int(usage.get("prompt_tokens") or 0)
            # Without accounting by the server: four characters to a token, the usual rule of thumb.
            completion_tokens = int(usage.get("completion_tokens") or math.ceil(len(text) / 4))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise _Failed(f"not a chat completion: {type(error).__name__} in {self._safe(_start(content))!r}",
                          retry=True) from error  # fmt: skip
        self.usage.prompt_tokens += prompt_tokens
        self.usage.completion_tokens += completion_tokens
        if choice.get("finish_reason") == "content_filter":
            return Completion("", prompt_tokens, completion_tokens, "error", "the endpoint's content filter stopped it")
        length = choice.get("finish_reason") == "length"
        return Completion(text, prompt_tokens, completion_tokens, "length" if length else "stop")

    def _adapt(self, message: str, body: dict[str, Any]) -> bool:
        """Leave out a parameter that this server refuses; True if the request is worth repeating."""
        if "max_completion_tokens" in message and "max_tokens" in body:
            self._tokens_field = "max_completion_tokens"
            return True
        for name in _DROPPABLE:
            if name in body and f"'{name}'" in message.replace('"', "'"):
                if name not in self._dropped:
                    logger.warning("model %s refuses the parameter %s; it is left out from now on", self._model, name)
                self._dropped.add(name)
                return True
        return False

    def _safe(self, text: str) -> str:
        """Take the key out of what a server sent back."""
        return text.replace(self._key, "[key]") if self._key else text


def _run(work: Coroutine[Any, Any, list[Completion]]) -> list[Completion]:
    """Run to the end, also where an event loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _text(content: Any) -> str:
    if isinstance(content, list):  # parts
        return "".join(part.get("text") or "" for part in content)
    if content is None:  # all tokens went into reasoning, or a tool was called
        return ""
    if not isinstance(content, str):
        raise TypeError(f"content is {type(content).__name__}")
    return content.encode("utf-8", "replace").decode("utf-8")


def _start(content: bytes) -> str:
    return content[:200].decode("utf-8", "replace")


def _error_message(content: bytes) -> str:
    """The message of an error object, with its code; else the beginning of the body."""
    try:
        error = json.loads(content)
        error = error.get("error", error)
        if isinstance(error, dict):
            return f"{error.get('message') or error.get('detail') or ''} {error.get('code') or ''}".strip()[:500]
        return str(error)[:500]
    except (ValueError, AttributeError, RecursionError):
        return _start(content).strip()


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds of a Retry-After header, in either of its forms (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None

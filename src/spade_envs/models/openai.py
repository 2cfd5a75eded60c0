"""Models behind an OpenAI-compatible endpoint (OpenAI, vLLM, SGLang, llama.cpp, Ollama, …), by httpx.

The key is read from the environment and goes nowhere but into the Authorization header: not into logs, errors,
records or ``repr``. Redirects are not followed, since they could carry it elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from spade_envs.models.answer import RequestFailed, beginning, error_message, read_answer, retry_after
from spade_envs.models.base import Completion, Conversation, ModelError, Sampling, ToolSchemas
from spade_envs.models.journal import ReplyJournal
from spade_envs.models.throttle import Slots, Throttle
from spade_envs.models.usage import Prices, Usage

logger = logging.getLogger(__name__)

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_OVERLOADED = frozenset({429, 503, 529})  # the request is sound, there is only no room for it now
_RETRIES_UNREACHED = 2
_MAX_BODY = 32 << 20  # bytes of one answer
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds
_DROPPABLE = ("seed", "top_p", "temperature")  # parameters that some servers refuse


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
        prices: Prices | None = None,
        journal: ReplyJournal | None = None,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            model: the model's name at the endpoint.
            base_url: e.g. ``http://localhost:8000/v1``; else OPENAI_BASE_URL, else OpenAI's own.
            concurrency: most requests at once; fewer while the endpoint refuses for load.
            retries: most repetitions of one request that fails by itself. An endpoint that is full, or that
                answered before and is gone, is tried again until the time is up.
            request_seconds: wall-clock bound on one request, however slowly it trickles.
            total_seconds: bound on one completion with all its repetitions and pauses, from its first request on.
            prices: of tokens, for ``usage.cost`` where the endpoint does not say what an answer costs.
            journal: where replies are kept, and taken from instead of asking again.

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
        self._retries, self._journal = retries, journal
        self._throttle = Throttle(concurrency)
        self._request_seconds, self._total_seconds = request_seconds, total_seconds
        self._trust_env = not _is_loopback(parts.hostname)  # a proxy must not stand before a local server
        self._tokens_field = "max_tokens"
        self._dropped: set[str] = set()
        self._reached = False
        self.usage = Usage(prices=prices or Prices())

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self._model

    @property
    def base_url(self) -> str:
        """Where it is asked."""
        return self._url

    @property
    def native_tools(self) -> bool:
        """Endpoints take tools; one that does not says so with the first request."""
        return True

    def complete(
        self,
        conversations: Sequence[Conversation],
        sampling: Sampling,
        *,
        tools: Sequence[ToolSchemas] | None = None,
    ) -> list[Completion]:
        """Return one completion for each conversation, in order; see :class:`ToolModel`."""
        return _run(self._all(conversations, sampling, tools or [()] * len(conversations)))

    def close(self) -> None:
        """Nothing is held between calls."""

    async def _all(
        self, conversations: Sequence[Conversation], sampling: Sampling, tools: Sequence[ToolSchemas]
    ) -> list[Completion]:
        """Ask for everything at once, within the bound; after an error or an interrupt drop what is under way."""
        slots, most = Slots(self._throttle), self._throttle.most
        async with httpx.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx.Timeout(self._request_seconds, connect=min(10.0, self._request_seconds), pool=None),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            follow_redirects=False,
            trust_env=self._trust_env,
        ) as client:
            tasks = [
                asyncio.create_task(self._one(client, slots, self._question(conversation, index, sampling, offered)))
                for index, (conversation, offered) in enumerate(zip(conversations, tools, strict=True))
            ]
            try:
                return list(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, client: httpx.AsyncClient, slots: Slots, question: dict[str, Any]) -> Completion:
        """One completion with its repetitions; a place is held while a request is under way, not during pauses."""
        key = ReplyJournal.key(self._url, question)
        rng = random.Random(key)
        if self._journal is not None and (known := self._journal.get(key)) is not None:
            self.usage.reused += 1
            return known
        failures = pauses = 0
        deadline = 0.0
        while True:
            async with slots.place():
                sent_at = time.monotonic()
                deadline = deadline or sent_at + self._total_seconds
                try:
                    completion = await self._request(client, self._body(question), deadline)
                except RequestFailed as error:
                    failure = error
                else:
                    self._throttle.answered()
                    if self._journal is not None:
                        self._journal.put(key, completion)
                    return completion
            pause = failure.pause
            if pause is None or (failure.overloaded and not pause):  # a full server must not be asked without pause
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**pauses) * rng.uniform(0.5, 1.0)
            pauses += 1
            gone = failure.unreachable and self._reached
            failures += not (failure.overloaded or gone)
            # A server that never answered is more likely misspelt than about to come back.
            retries = min(self._retries, _RETRIES_UNREACHED) if failure.unreachable else self._retries
            out_of_time = time.monotonic() + pause >= deadline
            if failure.overloaded:  # a pause that is not waited for here is not imposed on others either
                self.usage.throttled += 1
                self._throttle.refused(sent_at, None if out_of_time else failure.pause)
            if not failure.retry or failures > retries or out_of_time:
                return self._given_up(failure, pauses, out_of_time)
            self.usage.retries += 1
            logger.info("model %s: %s; again in %.1f s", self._model, failure, pause)
            await asyncio.sleep(pause)

    def _given_up(self, failure: RequestFailed, attempts: int, out_of_time: bool) -> Completion:
        if failure.unreachable and self._reached:
            raise ModelError(
                f"the endpoint {self._url} is gone ({failure}) and did not come back within {self._total_seconds:g} s; "
                f"start it again and resume"
            ) from failure
        if failure.unreachable:
            raise ModelError(
                f"the endpoint {self._url} cannot be reached ({failure}); start the server or correct the "
                f"base URL (option or OPENAI_BASE_URL)"
            ) from failure
        tried = f" (tried {attempts} times{', out of time' if out_of_time and failure.retry else ''})"
        return Completion("", finish_reason="error", error=f"{failure}{tried if attempts > 1 else ''}")

    def _question(
        self, conversation: Conversation, index: int, sampling: Sampling, tools: ToolSchemas
    ) -> dict[str, Any]:
        """What is asked for, before anything is left out or renamed for a server that does not know it."""
        question: dict[str, Any] = {
            "model": self._model,
            "messages": [dict(message) for message in conversation],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            # Replies to equal conversations differ, and do so again next time.
            "seed": random.Random(f"{sampling.seed}/{index}").getrandbits(31),
        }
        return {**question, "tools": list(tools)} if tools else question

    def _body(self, question: dict[str, Any]) -> dict[str, Any]:
        body = {key: value for key, value in question.items() if key not in self._dropped}
        body[self._tokens_field] = body.pop("max_tokens")
        return body

    async def _request(self, client: httpx.AsyncClient, body: dict[str, Any], deadline: float) -> Completion:
        self.usage.requests += 1
        status, headers, content = await self._send(client, body, deadline)
        self._reached = True
        if status == 200:
            return self._read(content)
        message = self._safe(error_message(content))
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
            raise RequestFailed(said, retry=True, pause=0.0)
        raise RequestFailed(
            said, retry=status in _RETRIED, pause=retry_after(headers), overloaded=status in _OVERLOADED
        )

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
                        raise RequestFailed(f"an answer of more than {_MAX_BODY >> 20} MiB", retry=False)
                return answer.status_code, answer.headers, b"".join(parts)
        except TimeoutError as error:
            raise RequestFailed(late, retry=True) from error
        except httpx.ConnectError as error:
            raise RequestFailed(self._safe(str(error)) or "no connection", retry=True, unreachable=True) from error
        except httpx.ConnectTimeout as error:
            raise RequestFailed("no connection in time", retry=True, unreachable=True) from error
        except httpx.TimeoutException as error:
            raise RequestFailed(late, retry=True) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            self._reached = True  # there was somebody: if nobody is there next, the server is being started again
            raise RequestFailed(f"the answer broke off: {self._safe(str(error))}", retry=True) from error
        except httpx.InvalidURL as error:
            raise ModelError(f"the base URL {self._url} is not usable: {error}") from error

    def _read(self, content: bytes) -> Completion:
        """Take the reply out of a chat completion object."""
        try:
            answer = read_answer(content)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise RequestFailed(f"not a chat completion: {type(error).__name__} in {self._safe(beginning(content))!r}",
                                retry=True) from error  # fmt: skip
        self.usage.add(answer.prompt_tokens, answer.completion_tokens, answer.cost)
        counts = answer.prompt_tokens, answer.completion_tokens
        if answer.finish == "content_filter":
            return Completion("", *counts, "error", "the endpoint's content filter stopped it")
        reason: Literal["stop", "length"] = "length" if answer.finish == "length" else "stop"
        return Completion(answer.text, *counts, reason, tool_calls=answer.calls)

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

"""Turns sampled by a vLLM server (``vllm serve``), one request for each, token ids in and out.

The server batches what is running; an answer is taken up when it comes, so no conversation waits for another one and
environments are answered while the server decodes. Prefix caching is on in vLLM unless it is switched off. For the
importance ratio the server must be started with ``--logprobs-mode processed_logprobs``.
"""

from __future__ import annotations

import asyncio
import math
import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from spade_train.cycle import Sample
from spade_train.engine import TurnRequest

_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds
_CLOSED = -(1 << 62)  # stands where a conversation's key stands, in the last answer of all
_SAYS_CLOSED = "the engine was closed while turns were under way"


class ServerError(RuntimeError):
    """The server gave no usable answer; the message says what it said and what to do."""


class ServerEngine:
    """Asks ``/v1/completions`` for every turn; see :class:`spade_train.engine.Engine`. Close it.

    Args:
        url: of the server, e.g. ``http://localhost:8000``.
        sampling: further fields of every request: temperature, top_p, …
        model: the name to ask for; by default the first one that the server lists. The attribute may be changed: the
            next turns ask for the new name.
        concurrency: most requests at once.
        retries: repetitions of a request that failed by itself or met a server that was full.
        request_seconds: longest wait for one turn.
        first_pause: seconds before the first repetition; doubled for each further one.

    Raises:
        ServerError: if the server cannot be reached.
    """

    lag = 0

    def __init__(
        self,
        url: str,
        sampling: Mapping[str, Any],
        *,
        model: str | None = None,
        concurrency: int = 1024,
        retries: int = 5,
        request_seconds: float = 3600.0,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self.steps = 0
        self._url, self._sampling = url.rstrip("/"), dict(sampling)
        self._retries, self._first_pause = retries, first_pause
        self._done: queue.SimpleQueue[tuple[int, Sample | Exception]] = queue.SimpleQueue()
        self._running: dict[int, Any] = {}
        self._closed, self._closing = False, threading.Lock()
        loopback = urlsplit(self._url).hostname in ("localhost", "127.0.0.1", "::1", "0.0.0.0")
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(request_seconds, connect=min(10.0, request_seconds), pool=None),
            limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
            trust_env=not loopback,  # a proxy must not stand before a local server
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm-server", daemon=True)
        self._thread.start()
        try:
            self.model = model or self.models()[0]
        except BaseException:
            self.close()
            raise

    def submit(self, requests: Sequence[TurnRequest]) -> None:
        """Send one request for each turn.

        Raises:
            ServerError: if the engine was closed, by another thread too.
        """
        for request in requests:
            if request.key in self._running:
                raise ValueError(f"conversation {request.key} is running already: collect its turn first")
            with self._closing:
                if self._closed:
                    raise ServerError(_SAYS_CLOSED)
                self._running[request.key] = asyncio.run_coroutine_threadsafe(self._turn(request), self._loop)

    def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
        """Return the turns that have been answered; wait for one if there is none yet.

        Raises:
            ServerError: if a turn could not be sampled, or the engine was closed meanwhile.
        """
        self.steps += 1
        if not self._running:
            return []
        answered = [self._done.get()]
        while not self._done.empty():
            answered.append(self._done.get())
        finished = []
        for key, sample in sorted(answered, key=lambda one: one[0]):
            if key == _CLOSED:
                self._done.put((_CLOSED, sample))  # for whoever asks again
                raise ServerError(_SAYS_CLOSED)
            del self._running[key]
            if isinstance(sample, Exception):
                raise sample
            finished.append((key, sample))
        return finished

    def release(self, keys: Iterable[int]) -> None:
        """Do nothing: the server drops the oldest blocks of its cache by itself."""

    def busy(self, running: int) -> bool:
        """Whether there is work here; other ranks ask the server themselves."""
        return running > 0

    def close(self) -> None:
        """Drop what is under way and end the client's thread; whoever waits for a turn is told."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._done.put((_CLOSED, ServerError(_SAYS_CLOSED)))  # turns that were dropped never answer

    def models(self) -> list[str]:
        """Return the names that the server answers to: its model and the adapters that it holds.

        Raises:
            ServerError: if it cannot be reached or names none.
        """
        answer = asyncio.run_coroutine_threadsafe(self._ask("GET", "/v1/models", None), self._loop).result()
        try:
            names = [str(one["id"]) for one in answer["data"]]
        except (KeyError, TypeError) as error:
            raise ServerError(f"{self._url}/v1/models lists no model: {str(answer)[:200]}") from error
        if not names:
            raise ServerError(f"{self._url}/v1/models lists no model: {str(answer)[:200]}")
        return names

    async def _shut(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.aclose()

    async def _turn(self, request: TurnRequest) -> None:
        body = {
            **self._sampling,
            "model": self.model,
            "prompt": request.context,
            "max_tokens": request.max_tokens,
            "n": 1,
            "logprobs": 0,  # of the sampled token alone
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        try:
            answer = _sample(await self._ask("POST", "/v1/completions", body), request.max_tokens)
        except Exception as error:  # told to whoever collects
            self._done.put((request.key, error))
        else:
            self._done.put((request.key, answer))

    async def _ask(self, method: str, path: str, body: Any) -> Any:
        """Return the decoded answer; ask again where that may help."""
        pause = self._first_pause
        for attempt in range(self._retries + 1):
            try:
                response = await self._client.request(method, self._url + path, json=body)
            except httpx.HTTPError as error:
                said = f"{type(error).__name__}: {error}"
                again = not isinstance(error, httpx.ReadTimeout)  # it had its time; a second try would have no more
            else:
                if response.status_code == 200:
                    try:
                        return response.json()
                    except ValueError as error:
                        raise ServerError(f"{self._url}{path} answered with no JSON: {response.text[:200]}") from error
                said, again = f"{response.status_code} {response.text[:300]}", response.status_code in _RETRIED
            if not again or attempt == self._retries:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise ServerError(
            f"{self._url}{path} failed after {attempt + 1} attempts: {said}. Is `vllm serve` running there, with "
            f"--max-model-len as large as context_tokens?"
        )


def _sample(answer: Any, max_tokens: int) -> Sample:
    try:
        choice = answer["choices"][0]
        ids, found = choice["token_ids"], choice["logprobs"]["token_logprobs"]
    except (KeyError, IndexError, TypeError) as error:
        raise ServerError(
            f"expected token_ids and logprobs in the answer of /v1/completions, got {str(answer)[:200]}; "
            f"return_token_ids needs vLLM 0.11 or newer"
        ) from error
    if not 0 < len(ids) <= max_tokens or len(found) != len(ids):
        raise ServerError(f"asked for 1 to {max_tokens} ids, got {len(ids)} with {len(found)} log-probabilities")
    return Sample([int(token) for token in ids], [math.nan if value is None else float(value) for value in found])

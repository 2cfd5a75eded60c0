"""vLLM's interfaces over a tiny model: ``LLMEngine.add_request``/``step`` and ``vllm serve``'s completions.

After vLLM 0.22 to 0.31: ``vllm/v1/engine/llm_engine.py``, ``vllm/v1/engine/input_processor.py``,
``vllm/entrypoints/openai/completion/protocol.py``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

FINAL_ONLY = 2


@dataclass
class SamplingParams:
    """The fields that are used."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_tokens: int = 16
    logprobs: int | None = None
    seed: int | None = None
    output_kind: int = 0


@dataclass
class Logprob:
    """One entry of a position's log-probabilities."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class CompletionOutput:
    """One sampled sequence."""

    token_ids: list[int]
    logprobs: list[dict[int, Logprob]] | None
    index: int = 0
    text: str = ""
    finish_reason: str | None = None


@dataclass
class RequestOutput:
    """What ``step`` returns for a request."""

    request_id: str
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    finished: bool


@dataclass
class _Request:
    prompt: list[int]
    params: SamplingParams
    ids: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)


def greedy(model: Any, context: list[int]) -> tuple[int, float]:
    """Return the likeliest next token and its log-probability."""
    with torch.no_grad():
        logits = model(torch.tensor([context]), use_cache=False).logits[0, -1].float()
    logprobs = torch.log_softmax(logits, -1)
    token = int(logprobs.argmax())
    return token, float(logprobs[token])


class LLMEngine:
    """Decodes one token of every request in each step, greedily."""

    def __init__(self, model: Any, eos: int, most: int = 3) -> None:
        self._model, self._eos, self._most = model, eos, most
        self._requests: dict[str, _Request] = {}
        self.running: list[int] = []  # requests decoded in each step
        self.aborted: list[str] = []

    def add_request(
        self,
        request_id: str,
        prompt: Any,
        params: SamplingParams,
        arrival_time: float | None = None,
        lora_request: Any = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
        trace_headers: Mapping[str, str] | None = None,
        priority: int = 0,
        session_id: str | None = None,
        prompt_text: str | None = None,
    ) -> str:
        """Take a rendered prompt; the name inside differs from the caller's, as vLLM's does."""
        if not isinstance(request_id, str):
            raise TypeError(f"request_id must be a string, got {type(request_id)}")
        if not (isinstance(prompt, dict) and prompt.get("type") == "token"):
            raise ValueError("raw prompts are gone; pass what a renderer makes")
        self._requests[request_id] = _Request(list(prompt["prompt_token_ids"]), params)
        return f"{request_id}-0f0f0f0f"

    def has_unfinished_requests(self) -> bool:
        """Whether any request is left."""
        return bool(self._requests)

    def step(self) -> list[RequestOutput]:
        """Decode; return what has ended, or everything where a request asks for more than that."""
        names = list(self._requests)[: self._most]
        self.running.append(len(names))
        outputs = []
        for name in names:
            one = self._requests[name]
            token, logprob = greedy(self._model, one.prompt + one.ids)
            one.ids.append(token)
            one.logprobs.append({token: Logprob(logprob, 1)})
            finished = token == self._eos or len(one.ids) == one.params.max_tokens
            if finished or one.params.output_kind != FINAL_ONLY:
                logprobs = None if one.params.logprobs is None else list(one.logprobs)
                reply = CompletionOutput(list(one.ids), logprobs, finish_reason="stop" if finished else None)
                outputs.append(RequestOutput(name, one.prompt, [reply], finished))
            if finished:
                del self._requests[name]
        return outputs

    def abort_request(self, request_ids: list[str], internal: bool = False) -> None:
        """Drop requests."""
        self.aborted += request_ids
        for name in request_ids:
            self._requests.pop(name, None)


class LLM:
    """As much of ``vllm.LLM`` as a trainer with a colocated engine touches."""

    def __init__(self, engine: LLMEngine) -> None:
        self.llm_engine = engine
        self.log: list[str] = []

    def wake_up(self, tags: list[str] | None = None) -> None:
        """Note it."""
        self.log.append(f"wake {tags}")

    def sleep(self, level: int = 1) -> None:
        """Note it."""
        self.log.append(f"sleep {level}")


@dataclass
class Server:
    """A running server: its address and what it was asked."""

    url: str
    bodies: list[dict[str, Any]]
    most_at_once: list[int]


@contextmanager
def vllm_serve(
    answer: Callable[[dict[str, Any]], tuple[int, Any]], models: tuple[str, ...] = ("policy",)
) -> Iterator[Server]:
    """Serve ``/v1/models`` and ``/v1/completions``; ``answer`` makes status and JSON of a request's body."""
    lock, running = threading.Lock(), [0]
    server_state = Server("", [], [0])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Keep the terminal quiet."""

        def _reply(self, status: int, value: Any) -> None:
            data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._reply(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in models]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                server_state.bodies.append(body)
                running[0] += 1
                server_state.most_at_once[0] = max(server_state.most_at_once[0], running[0])
            try:
                self._reply(*answer(body))
            except (BrokenPipeError, ConnectionResetError):  # the client has gone
                self.close_connection = True
            finally:
                with lock:
                    running[0] -= 1

    class Listening(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Listening(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        server_state.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield server_state
        finally:
            server.shutdown()
            thread.join()


def completion(ids: list[int], logprobs: list[float | None], prompt: list[int], reason: str = "stop") -> dict[str, Any]:
    """Return an answer of ``/v1/completions`` with token ids and the sampled tokens' log-probabilities."""
    return {
        "id": "cmpl-0",
        "object": "text_completion",
        "created": int(time.time()),
        "model": "policy",
        "choices": [
            {
                "index": 0,
                "text": "",
                "logprobs": {
                    "text_offset": [0] * len(ids),
                    "token_logprobs": logprobs,
                    "tokens": [f"token_id:{token}" for token in ids],
                    "top_logprobs": [{f"token_id:{t}": value} for t, value in zip(ids, logprobs, strict=True)],
                },
                "finish_reason": reason,
                "stop_reason": None,
                "token_ids": ids,
                "prompt_logprobs": None,
                "prompt_token_ids": prompt,
            }
        ],
        "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)},
    }

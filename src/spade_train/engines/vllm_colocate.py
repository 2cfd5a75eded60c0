"""Turns sampled by a vLLM engine in this process, each one leaving as soon as it has ended.

``LLM.generate`` waits for the longest of its prompts; its engine underneath does not: requests are added at any time,
and every step returns what has ended with it. The conversation so far is found in vLLM's prefix cache.

Random numbers are the engine's own: a seed for each request would make vLLM draw row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spade_train.cycle import Sample
from spade_train.engine import TurnRequest


class ColocatedEngine:
    """Drives a ``vllm.LLMEngine``; see :class:`spade_train.engine.Engine`.

    Args:
        llm_engine: ``LLM(...).llm_engine``, which has no requests of its own while this lives.
        parameters: makes the ``SamplingParams`` of a turn from its length and temperature (None: the usual one).
            They must ask for the sampled token's log-probability and for final outputs only.
        lag: see :class:`spade_train.engine.Engine`.
    """

    def __init__(self, llm_engine: Any, parameters: Callable[[int, float | None], Any], *, lag: int = 1) -> None:
        self.lag = lag
        self.steps = 0
        self._engine, self._parameters = llm_engine, parameters
        self._keys: dict[str, int] = {}  # request: conversation
        self._asked = 0

    def submit(self, requests: Sequence[TurnRequest]) -> None:
        """Add one request for each turn."""
        for request in requests:
            name = f"spade-{self._asked}"
            self._asked += 1
            self._keys[name] = request.key
            prompt = {"type": "token", "prompt_token_ids": request.context}
            self._engine.add_request(name, prompt, self._parameters(request.max_tokens, request.temperature))

    def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
        """Step until a turn has ended; see :class:`~spade_train.engine.Engine`.

        Raises:
            RuntimeError: if the engine lost a request.
        """
        limit = self.steps + steps if steps else None
        while self._keys:
            if not self._engine.has_unfinished_requests():
                raise RuntimeError(f"vLLM ended without an answer to {len(self._keys)} requests; see its own log")
            outputs = self._engine.step()
            self.steps += 1
            finished = [
                (self._keys.pop(output.request_id), vllm_sample(output.outputs[0]))
                for output in outputs
                if output.finished and output.request_id in self._keys
            ]
            if finished:
                return sorted(finished, key=lambda one: one[0])
            if limit is not None and self.steps >= limit:
                break
        return []

    def release(self, keys: Iterable[int]) -> None:
        """Do nothing: vLLM drops the oldest blocks of its cache by itself."""

    def busy(self, running: int) -> bool:
        """Whether there is work here."""
        return running > 0

    def close(self) -> None:
        """Drop the requests that are still running."""
        if self._keys:
            self._engine.abort_request(list(self._keys))
            self._keys = {}


def vllm_sample(output: Any) -> Sample:
    """Return ids and log-probabilities of a ``vllm.CompletionOutput``.

    Raises:
        RuntimeError: if there is not one log-probability for each id.
    """
    ids = [int(token) for token in output.token_ids]
    if output.logprobs is None or len(output.logprobs) != len(ids):
        count = "none" if output.logprobs is None else str(len(output.logprobs))
        raise RuntimeError(f"expected a log-probability for each of {len(ids)} sampled ids from vLLM, got {count}")
    return Sample(ids, [float(found[token].logprob) for token, found in zip(ids, output.logprobs)])

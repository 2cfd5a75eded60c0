"""How the turns of many conversations are sampled at the same time.

An :class:`Engine` takes turns of conversations and gives them back as they finish, in any order.
:class:`LockStepEngine` makes one of any :class:`~spade_train.cycle.Sampler`: all waiting turns are sampled in one
call, and everybody waits for the longest. The engines in :mod:`spade_train.engines` let nobody wait.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from spade_train.cycle import Sample, Sampler


class TurnRequest(NamedTuple):
    """One turn to sample. ``key`` names the conversation: turns of one key follow each other."""

    key: int
    context: list[int]  # all ids so far
    max_tokens: int  # end-of-turn token included
    temperature: float | None = None  # None: the engine's own
    turn: int = 0  # number of the turn in its conversation
    # Only the engine over slots takes these two, for requests that know nothing of each other.
    top_p: float | None = None  # None: the engine's own
    seed: int | None = None  # in the place of the engine's seed, the key and the turn


class Engine(Protocol):
    """Samples turns of conversations."""

    @property
    def lag(self) -> int:
        """Model steps after which finished turns are answered; 0: they are answered before the next model step.

        A fixed number, so that which turns share a batch does not depend on how long environments take.
        """
        ...

    @property
    def steps(self) -> int:
        """Model steps so far; what ``lag`` is counted in."""
        ...

    def submit(self, requests: Sequence[TurnRequest]) -> None:
        """Take turns to sample. A key must not be running already."""
        ...

    def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
        """Sample until at least one turn has finished, and return the finished ones by key.

        Args:
            steps: give up after so many model steps and return nothing; 0: never.

        Returns:
            Nothing either if no turn is running.
        """
        ...

    def release(self, keys: Iterable[int]) -> None:
        """Forget conversations that have ended, and what is cached for them."""
        ...

    def busy(self, running: int) -> bool:
        """Whether there is work: ``running`` conversations here, or any on another rank of a collective backend."""
        ...


@runtime_checkable
class EngineSource(Protocol):
    """A sampler that has a better engine than lock step."""

    def engine(self) -> contextlib.AbstractContextManager[Engine]:
        """Return an engine that lives as long as the context: weights and cache are held by it."""
        ...


class LockStepEngine:
    """All waiting turns in one call of a sampler. On a collective backend every rank calls equally often."""

    lag = 0

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self.steps = 0  # calls of the sampler
        self._waiting: list[TurnRequest] = []

    def submit(self, requests: Sequence[TurnRequest]) -> None:
        """Take turns for the next call; see :class:`Engine`."""
        self._waiting += requests

    def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
        """Sample all waiting turns, with the length of the longest; see :class:`Engine`.

        Raises:
            ValueError: if the turns want different temperatures, which one call cannot have, or a top_p or a seed.
        """
        turns, self._waiting = self._waiting, []
        if any(turn.top_p is not None or turn.seed is not None for turn in turns):
            raise ValueError("a lock-step call takes its top_p and its seed from the sampler, not from its turns")
        temperatures = {turn.temperature for turn in turns}
        if len(temperatures) > 1:
            raise ValueError(f"expected one temperature for all turns of a lock-step call, got {temperatures}")
        longest = max((turn.max_tokens for turn in turns), default=1)
        self.steps += 1
        samples = self._sampler.sample([turn.context for turn in turns], longest, *temperatures - {None})
        return [(turn.key, _cut(sample, turn.max_tokens)) for turn, sample in zip(turns, samples, strict=True)]

    def release(self, keys: Iterable[int]) -> None:
        """Do nothing: nothing is kept."""

    def busy(self, running: int) -> bool:
        """Ask the sampler; see :class:`Engine`."""
        return self._sampler.busy(running)


@contextlib.contextmanager
def engine_of(sampler: Sampler) -> Iterator[Engine]:
    """Give the sampler's own engine while the context is open, or a lock-step engine over it."""
    if isinstance(sampler, EngineSource):
        with sampler.engine() as engine:
            yield engine
    else:
        yield LockStepEngine(sampler)


def sample_all(
    engine: Engine, prompts: Sequence[list[int]], max_tokens: int, temperature: float | None = None
) -> list[Sample]:
    """Return one sample for each prompt, in order: a :class:`~spade_train.cycle.Sampler`'s call by an engine."""
    engine.submit([TurnRequest(key, prompt, max_tokens, temperature) for key, prompt in enumerate(prompts)])
    samples: dict[int, Sample] = {}
    while len(samples) < len(prompts):
        finished = dict(engine.collect())
        if not finished:
            raise RuntimeError(f"the engine returned {len(samples)} of {len(prompts)} samples and runs no more")
        samples |= finished
        engine.release(finished)
    return [samples[key] for key in range(len(prompts))]


def _cut(sample: Sample, length: int) -> Sample:
    return Sample(sample.ids[:length], None if sample.logprobs is None else sample.logprobs[:length])

"""Self-play for TRL's asynchronous GRPO: cycles run on rank 0 while all ranks train on earlier ones.

``trl.experimental.async_grpo.AsyncGRPOTrainer`` (1.16) takes any object with the five members of its
``RolloutWorkerProtocol`` and trains on the samples that it finds in a queue: ids, mask, sampling log-probabilities and
one advantage each. :class:`SelfPlayWorker` is such an object. It samples from a vLLM server and asks for the newest
adapter with every turn; the ratio of the policies, clipped as usual, corrects for what is older.

Where it differs from the synchronous trainer: tokens are averaged within a micro-batch, not over a cycle; rows without
an advantage are left out; there is no reference policy (``beta``); which policy sampled a row depends on the time that
things take, so runs do not repeat exactly and a resumed run starts a new cycle.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spade_train.advantages import SpadeReward
from spade_train.cycle import Sample
from spade_train.engine import Engine, TurnRequest, sample_all
from spade_train.engines.vllm_server import ServerEngine
from spade_train.rows import Row

if TYPE_CHECKING:
    from trl.experimental.async_grpo import AsyncGRPOConfig
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    from spade_train.config import SpadeConfig
    from spade_train.selfplay import SelfPlay

ADAPTER = "trl-policy"
"""How AsyncGRPOTrainer names the adapters that it loads into the server: ``trl-policy-v<version>``."""

_DERIVED = {"num_generations", "generation_batch_size", "steps_per_generation", "logging_steps", "top_k"}
_PUT_SECONDS = 1.0


class WorkerError(RuntimeError):
    """The rollouts stopped; the message says why."""


class _Beating(ServerEngine):
    """Says that it is alive whenever turns come in."""

    beat = 0.0

    def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
        """Return finished turns; see :class:`ServerEngine`."""
        finished = super().collect(steps)
        self.beat = time.time()
        return finished

    def submit(self, requests: Sequence[TurnRequest]) -> None:
        """Take turns; see :class:`ServerEngine`."""
        self.beat = time.time()
        super().submit(requests)


class _ServerSampler:
    """A :class:`spade_train.cycle.Sampler` over one engine that stays open."""

    def __init__(self, engine: _Beating) -> None:
        self._engine = engine

    def sample(self, prompts: Sequence[list[int]], max_tokens: int, temperature: float | None = None) -> list[Sample]:
        """Return one sample for each prompt."""
        return sample_all(self._engine, prompts, max_tokens, temperature)

    def busy(self, prompts: int) -> bool:
        """Whether there is work here: nothing is collective."""
        return prompts > 0

    @contextlib.contextmanager
    def engine(self) -> Iterator[Engine]:
        """Give the engine for conversations."""
        yield self._engine


class SelfPlayWorker:
    """Runs cycles in a thread and queues their rows; pass it as ``rollout_worker``.

    Args:
        session: of rank 0. Every rank must open one (that is collective), the others close theirs again.
        url: of the vLLM server, started with ``--logprobs-mode processed_logprobs``.
        sampling: fields of every request; ``temperature`` must be that of the trainer's configuration.
        waiting: rows that may wait for the trainer; a cycle that made more waits for it. Small keeps them fresh.
        first: number of the first cycle.
    """

    def __init__(
        self,
        session: SelfPlay,
        url: str,
        sampling: Mapping[str, Any],
        *,
        waiting: int = 256,
        first: int = 0,
    ) -> None:
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue(maxsize=waiting)
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self.cycles = first
        self._session = session
        self._reward = _reward(session.config)
        self._engine = _Beating(url, sampling)
        self._base = self._engine.model
        self._author = self._frozen(url, sampling)
        self._version, self._groups = 0, 0
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="self-play", daemon=True)

    def start(self) -> None:
        """Begin with the first cycle."""
        self._engine.beat = time.time()
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """End after the turns that are under way, and close the session."""
        self._ended.set()
        with contextlib.suppress(queue.Empty):
            while True:  # whoever waits for room comes out
                self.rollout_buffer.get_nowait()
        for engine in (self._engine, self._author):
            if engine is not None:
                engine.close()
        if self._thread.ident is not None:
            self._thread.join(timeout=60.0)
        self._session.close()

    def update_model_version(self, model_version: int) -> None:
        """Take note of the policy that the server has now; the next turns ask for it.

        Raises:
            WorkerError: if programs are to be written by the base model and the server holds merged weights.
        """
        self._version = int(model_version)
        name = f"{ADAPTER}-v{self._version}"
        adapter = name in self._engine.models()  # else the weights under its own name are new
        if not adapter and self._author is not None:
            raise WorkerError("a frozen designer needs the base model: start the server with --enable-lora")
        self._engine.model = name if adapter else self._base

    def check_health(self, stale_after_s: float) -> None:
        """Raise if cycles stopped, or if no turn has come in for so many seconds.

        Raises:
            WorkerError: with the reason.
        """
        if self._error is not None:
            raise WorkerError(f"self-play stopped in cycle {self.cycles}: {self._error}") from self._error
        silent = time.time() - self._engine.beat
        if silent > stale_after_s:
            raise WorkerError(
                f"no turn has come from the server for {silent:.0f} s, and nothing is queued: raise "
                f"heartbeat_stale_after_s if cycles take so long, or look at the server"
            )

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._cycle()
                self.cycles += 1
        except BaseException as error:
            if not self._ended.is_set():
                self._error = error

    def _cycle(self) -> None:
        version = self._version
        author = None if self._author is None else _ServerSampler(self._author)
        cycle, metrics = self._session.run_cycle(self.cycles, _ServerSampler(self._engine), designer_sampler=author)
        said = dict(metrics)
        values = self._reward(
            prompts=[], completions=[], spade_row=cycle.rows, log_metric=said.__setitem__, log_extra=lambda *_: None
        )
        self._session.commit(alone=True)
        self.metrics_queue.put({name: float(value) for name, value in said.items()})
        for sample in self._samples(cycle.rows, values, version):
            while not self._ended.is_set():
                try:
                    self.rollout_buffer.put(sample, timeout=_PUT_SECONDS)
                    break
                except queue.Full:
                    self._engine.beat = time.time()  # waiting for the trainer is no illness

    def _frozen(self, url: str, sampling: Mapping[str, Any]) -> _Beating | None:
        """Return what writes programs where the policy does so as it was before training: the server's base model."""
        config = self._session.config
        if config.mode != "self_play" or config.designer_model or config.train_designer:
            return None
        return _Beating(url, sampling, model=self._base)

    def _samples(self, rows: Sequence[Row], values: Sequence[float], version: int) -> list[RolloutSample]:
        """Return the rows that carry an advantage; rows of one group keep one number, so that they share a forward."""
        groups: dict[tuple[str, str], int] = {}
        samples = []
        for row, value in zip(rows, values, strict=True):
            if row.role == "pad" or not value or not row.tokens:
                continue
            group = groups.setdefault((row.role, row.group), self._groups + len(groups))
            samples.append(rollout_sample(row, value, version, group))
        self._groups += len(groups)
        return samples


def _reward(config: SpadeConfig) -> SpadeReward:
    """Return the pay of one rank's cycles; the session's own may ask all ranks, which do not run cycles here."""
    weights = {"designer": config.designer_weight, "hint": config.hint_weight, "agent": config.agent_weight}
    return SpadeReward(weights=weights, delay=config.regenerate_every)


def rollout_sample(row: Row, advantage: float, version: int, group: int) -> RolloutSample:
    """Return a row as the asynchronous trainer takes it.

    Tokens whose log-probability the server did not give (NaN) are context: without it they have no ratio.

    Args:
        row: with log-probabilities.
        advantage: of all its tokens.
        version: of the policy that the row's cycle began with.
        group: number that rows with the same prompt share.

    Raises:
        ValueError: if the row has no log-probabilities.
    """
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    if len(row.logprobs) != len(row.completion_ids):
        raise ValueError(
            f"expected one log-probability for each of {len(row.completion_ids)} ids, got {len(row.logprobs)}"
        )
    prompt = len(row.prompt_ids)
    known = [not math.isnan(value) for value in row.logprobs]
    mask = [one * real for one, real in zip(row.mask, known)]
    logprobs = [value if real else 0.0 for value, real in zip(row.logprobs, known)]
    return RolloutSample(
        prompt=[],
        completion=[],
        input_ids=np.asarray(row.context, dtype=np.int64),
        completion_mask=np.asarray([0] * prompt + mask, dtype=np.int64),
        old_log_probs=np.asarray([0.0] * prompt + logprobs, dtype=np.float32),
        advantage=float(advantage),
        model_version=version,
        group_id=group,
        metrics={"reward": float("nan") if row.reward is None else float(row.reward)},
        enqueued_at=time.time(),
    )


def async_config(config: SpadeConfig, **changes: Any) -> AsyncGRPOConfig:
    """Return the asynchronous trainer's configuration of a recipe: the fields that both have, and ``changes``."""
    from trl.experimental.async_grpo import AsyncGRPOConfig

    shared = {field.name for field in dataclasses.fields(AsyncGRPOConfig) if field.init} - _DERIVED
    values = {name: value for name in shared if (value := getattr(config, name, None)) is not None}
    return AsyncGRPOConfig(**(values | changes))


def sampling_of(config: SpadeConfig) -> dict[str, Any]:
    """Return the fields of every request to the server: the distribution that the trainer scores rows under."""
    found = {
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k or -1,
        "min_p": config.min_p,
    }
    return {name: value for name, value in found.items() if value is not None}

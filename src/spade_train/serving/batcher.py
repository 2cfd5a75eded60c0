"""Requests that wait are answered together: one thread, one model, batches of whatever is there."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from spade_envs.models.base import Completion, Message, ModelError, Sampling
from spade_envs.models.transformers import TransformersModel

logger = logging.getLogger(__name__)

_GATHER_SECONDS = 0.01
"""That the first request waits for others: little beside a reply's time, and enough for those sent together."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request."""

    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]]
    sampling: Sampling
    reply: Future[Completion] = field(default_factory=Future)

    @property
    def key(self) -> tuple[float, float, int]:
        """What a batch of ``generate`` has in common; each job has its own seed."""
        return self.sampling.temperature, self.sampling.top_p, self.sampling.max_tokens

    def tell(self, completion: Completion) -> None:
        """Give the reply, if somebody still waits for it."""
        if self.reply.set_running_or_notify_cancel():
            self.reply.set_result(completion)

    def fail(self, error: Exception) -> None:
        """Have whoever waits for the reply see ``error``."""
        if self.reply.set_running_or_notify_cancel():
            self.reply.set_exception(error)


class Answers(Protocol):
    """Whatever answers jobs."""

    def submit(self, job: Job) -> Future[Completion]:
        """Have a job answered; the future gives its completion, or raises what the model raised."""
        ...

    def close(self) -> None:
        """Answer nothing further; what waits is cancelled."""
        ...


class Batcher:
    """Answers jobs in the order of their arrival, the first and all that go with it at once.

    Args:
        model: answers; only this object's thread calls it.
        most: jobs in one batch.
    """

    def __init__(self, model: TransformersModel, most: int = 16) -> None:
        self._model, self._most = model, most
        self._arrived: queue.Queue[Job | None] = queue.Queue()
        self.batches: list[int] = []  # sizes so far, the last thousand
        self._thread = threading.Thread(target=self._work, name="batcher", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Completion]:
        """Have a job answered; the future gives its completion, or raises what the model raised."""
        self._arrived.put(job)
        return job.reply

    def close(self) -> None:
        """Answer nothing further; what waits is cancelled."""
        self._arrived.put(None)
        self._thread.join(timeout=5.0)

    def _work(self) -> None:
        waiting: list[Job] = []
        while True:
            if not waiting and not self._take(waiting, None):
                return
            while self._take(waiting, _GATHER_SECONDS):
                pass
            waiting = [job for job in waiting if not job.reply.cancelled()]
            if not waiting:
                continue
            first = waiting[0].key
            batch = [job for job in waiting if job.key == first][: self._most]
            taken = {id(job) for job in batch}
            waiting = [job for job in waiting if id(job) not in taken]
            self.batches = [*self.batches[-999:], len(batch)]
            self._answer(batch)

    def _take(self, waiting: list[Job], seconds: float | None) -> bool:
        """Append one arrived job; False if none came, or the end did."""
        try:
            job = self._arrived.get(timeout=seconds)
        except queue.Empty:
            return False
        if job is None:
            for other in waiting:
                other.reply.cancel()
            waiting.clear()
            self._arrived.put(None)  # seen again where nothing waits
            return False
        waiting.append(job)
        return True

    def _answer(self, batch: Sequence[Job]) -> None:
        try:
            completions = self._model.complete(
                [job.messages for job in batch],
                batch[0].sampling,
                tools=[job.tools for job in batch],
                seeds=[job.sampling.seed for job in batch],
            )
        except ModelError as error:
            if len(batch) > 1:  # one conversation that the template refuses must not cost the others their replies
                for job in batch:
                    self._answer([job])
                return
            completions = [Completion("", finish_reason="error", error=str(error))]
        except Exception as error:
            logger.exception("a batch of %d requests failed", len(batch))
            for job in batch:
                job.fail(error)
            return
        for job, completion in zip(batch, completions, strict=True):
            job.tell(completion)

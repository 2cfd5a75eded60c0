"""Requests answered over slots: each is read and decoded beside the others, and what a dialogue shares is kept.

A request joins those that run, and leaves as soon as it has ended. A dialogue sends its whole history with every
request; its keys and values are still there, so that only what is new is read.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections import deque
from concurrent.futures import Future
from typing import NamedTuple

import torch

from spade_envs.models.base import Completion, ModelError
from spade_envs.models.transformers import TransformersModel
from spade_train.engine import TurnRequest
from spade_train.engines.draw import Draw
from spade_train.engines.kv import UnsupportedModelError
from spade_train.engines.slots import SlotEngine, check_model
from spade_train.serving.batcher import Answers, Batcher, Job

logger = logging.getLogger(__name__)

_CHUNK_TOKENS = 512
"""Of prompts that are read between two decoding steps, for which those that are being answered wait."""


class _Request(NamedTuple):
    job: Job
    prompt: list[int]
    room: int  # tokens of the reply at most

    @property
    def columns(self) -> int:
        return len(self.prompt) + self.room


class SlotBatcher:
    """Answers jobs side by side, first come, first served.

    Args:
        model: answers; only this object's thread runs it.
        most: jobs answered at the same time; fewer where prompts and replies are so long that the model's
            ``max_batch_tokens`` would not hold them.

    Raises:
        UnsupportedModelError: if the model cannot be run over slots.
    """

    def __init__(self, model: TransformersModel, most: int = 16) -> None:
        check_model(model.module)
        self._model, self._most = model, most
        self._engine = self._new_engine(most)
        self._slots = most
        self._arrived: queue.Queue[Job | None] = queue.Queue()
        self._waiting: deque[_Request] = deque()
        self._running: dict[int, _Request] = {}
        self._count = 0  # of requests so far; each is a conversation of its own to the engine
        self.busiest = 0  # most jobs that were answered at the same time
        self._thread = threading.Thread(target=self._work, name="slot batcher", daemon=True)
        self._thread.start()

    @property
    def tokens_read(self) -> int:
        """Tokens of prompts that were computed so far; the others were kept from earlier requests."""
        return self._engine.read

    def submit(self, job: Job) -> Future[Completion]:
        """Have a job answered; see :class:`~spade_train.serving.batcher.Answers`."""
        self._arrived.put(job)
        return job.reply

    def close(self) -> None:
        """Answer nothing further; what waits is cancelled."""
        self._arrived.put(None)
        self._thread.join(timeout=5.0)

    def _new_engine(self, slots: int) -> SlotEngine:
        return SlotEngine(
            *(self._model.module, Draw(), self._model.end_ids),
            slots=slots,
            chunk_tokens=_CHUNK_TOKENS,
            keep=True,
        )

    def _work(self) -> None:
        if self._model.one_thread:
            torch.set_num_threads(1)
        with torch.inference_mode():
            while self._take():
                try:
                    self._admit()
                    self._drop_cancelled()
                    for key, sample in self._engine.collect(steps=1):
                        self._engine.release([key])
                        request = self._running.pop(key)
                        request.job.tell(self._model.completion(request.prompt, sample.ids))
                except Exception as error:
                    logger.exception("%d requests failed", len(self._running))
                    for request in self._running.values():
                        request.job.fail(error)
                    self._running.clear()
                    self._engine = self._new_engine(self._slots)  # nobody knows what state it is in
        for request in (*self._running.values(), *self._waiting):
            request.job.reply.cancel()

    def _take(self) -> bool:
        """Take all jobs that have arrived, and wait for one if there is nothing else to do; False at the end."""
        with contextlib.suppress(queue.Empty):
            while True:
                idle = not self._running and not self._waiting
                job = self._arrived.get(block=idle)
                if job is None:
                    return False
                self._prepare(job)
        return True

    def _prepare(self, job: Job) -> None:
        try:
            prompt = self._model.prompt(job.messages, job.tools)
        except ModelError as error:
            job.tell(Completion("", finish_reason="error", error=str(error)))
            return
        except Exception as error:  # a template that fails on this conversation must not end the thread
            logger.exception("a request could not be read")
            job.fail(error)
            return
        if refusal := self._model.refused(prompt):
            job.tell(refusal)
            return
        room = min(job.sampling.max_tokens, self._model.context - len(prompt))
        self._waiting.append(_Request(job, prompt, room))

    def _admit(self) -> None:
        while self._waiting:
            request = self._waiting[0]
            fitting = max(1, min(self._most, self._model.max_batch_tokens // request.columns))
            if fitting < self._slots:
                if self._running:  # the slots are long enough for one so long when they are fewer
                    return
                self._slots, self._engine = fitting, self._new_engine(fitting)
            if len(self._running) >= self._slots:
                return
            self._waiting.popleft()
            sampling = request.job.sampling
            key, self._count = self._count, self._count + 1
            self._running[key] = request
            self.busiest = max(self.busiest, len(self._running))
            seed = sampling.seed & (1 << 64) - 1
            turn = TurnRequest(key, request.prompt, request.room, sampling.temperature, 0, sampling.top_p, seed)
            self._engine.submit([turn])

    def _drop_cancelled(self) -> None:
        """Leave off what nobody waits for any more."""
        gone = [key for key, request in self._running.items() if request.job.reply.cancelled()]
        self._engine.release(gone)
        for key in gone:
            del self._running[key]


def answers(model: TransformersModel, most: int) -> Answers:
    """Return what answers for ``model``: over slots, or in batches of ``generate`` if it cannot be run so."""
    try:
        return SlotBatcher(model, most)
    except (UnsupportedModelError, RuntimeError, TypeError, KeyError, IndexError, AttributeError) as error:
        logger.warning("requests are answered in batches, all waiting for the longest: %s", error)
        return Batcher(model, most)

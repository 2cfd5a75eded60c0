"""Running a suite: units of questions, concurrently or in batches, resumable, cached.

A unit is the least that is asked at once: one item where the model is an endpoint (threads keep several under way),
a fixed slice of the list where it runs in this process (a batch). What a unit gets depends on the unit alone, by its
seed; so a run that was killed goes on to the same answers, and nothing that was answered is asked again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from spade_envs.models.base import ChatModel
from spade_train.evaluation.journal import AnswerJournal
from spade_train.evaluation.question import Answer, Item, Question
from spade_train.evaluation.suite import Suite

Notice = Callable[[int, int, str], None]
"""Called with answers so far, answers wanted, and a few words."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run, none of which changes a question."""

    concurrency: int = 16  # requests under way, for an endpoint
    batch: int = 32  # items of one unit, for a model in this process
    seed: int = 0

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.batch < 1:
            raise ValueError("concurrency and batch must be at least 1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """All answers of a run in the order of its items; ``asked`` counts those that this session asked for."""

    answers: list[Answer]
    asked: int
    seconds: float


def plan(questions: Sequence[Question], samples: int) -> list[Item]:
    """Return every question ``samples`` times, all first samples before the second ones."""
    return [Item(question, sample) for sample in range(samples) for question in questions]


def is_endpoint(model: ChatModel) -> bool:
    """Whether ``model`` answers over the network, so that single requests are cheap and waiting is not."""
    from spade_envs.models.openai import OpenAIModel

    return isinstance(model, OpenAIModel)


def run_items(
    suite: Suite,
    items: Sequence[Item],
    model: ChatModel,
    journal: AnswerJournal,
    settings: RunSettings,
    notice: Notice | None = None,
) -> Outcome:
    """Have all items answered, taking from the journal what is there.

    Raises:
        ModelError: if the model as a whole cannot be used; what was answered is in the journal.
    """
    started = time.monotonic()
    single = is_endpoint(model)
    size = 1 if single else settings.batch
    units = [items[start : start + size] for start in range(0, len(items), size)]
    # The journal has a unit whole, but for items that failed: those are asked again.
    missing = [[item for item in unit if item.key not in journal.answers] for unit in units]
    open_units = [unit for unit in missing if unit]
    failed: dict[tuple[str, int], Answer] = {}
    asked = 0
    before = len(items) - sum(map(len, open_units))
    progress = _Progress(len(items), before, notice)
    known = [journal.answers[item.key] for item in items if item.key in journal.answers]
    progress.note(known, 0)
    if hasattr(model, "on_tokens"):
        model.on_tokens = progress.writing
    for unit, answers in _answers(suite, open_units, model, settings, settings.concurrency if single else 1):
        journal.put(answers)
        failed.update((answer.key, answer) for answer in answers if answer.error)
        asked += len(unit)
        progress.note(answers, len(unit))
    found = [journal.answers.get(item.key) or failed[item.key] for item in items]
    return Outcome(found, asked, time.monotonic() - started)


def _answers(
    suite: Suite, units: Sequence[Sequence[Item]], model: ChatModel, settings: RunSettings, threads: int
) -> Iterator[tuple[Sequence[Item], list[Answer]]]:
    """Yield units with their answers as they come; the first error ends it, with nothing further asked."""

    def ask(unit: Sequence[Item]) -> list[Answer]:
        return suite.answer(unit, model, unit_seed(settings.seed, suite.name, unit))

    if threads == 1:
        for unit in units:
            yield unit, ask(unit)
        return
    waiting = iter(units)
    with ThreadPoolExecutor(threads, thread_name_prefix="evaluation") as pool:
        under_way: dict[Future[list[Answer]], Sequence[Item]] = {}
        try:
            while True:
                # Few more than can run: an interrupt should not find thousands of requests queued.
                for unit in waiting:
                    under_way[pool.submit(ask, unit)] = unit
                    if len(under_way) >= 2 * threads:
                        break
                if not under_way:
                    return
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    yield under_way.pop(future), future.result()
        finally:
            for future in under_way:
                future.cancel()


def unit_seed(seed: int, suite: str, unit: Sequence[Item]) -> int:
    """The seed of a unit: a hash of what it asks, so it does not depend on what else is asked."""
    text = f"{seed}/{suite}/" + "/".join(f"{item.question.id}#{item.sample}" for item in unit)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


class _Progress:
    """Counts, the score so far, and the time left at the pace of this session."""

    def __init__(self, total: int, before: int, notice: Notice | None) -> None:
        self._total, self._done, self._notice = total, before, notice
        self._new, self._score, self._count = 0, 0.0, 0
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def note(self, answers: Sequence[Answer], new: int) -> None:
        with self._lock:
            self._done, self._new = self._done + new, self._new + new
            self._score += sum(answer.score for answer in answers)
            self._count += len(answers)
            if self._notice is None:
                return
            self._notice(self._done, self._total, self._words())

    def writing(self, tokens: int, most: int, going: int) -> None:
        """Say how far a batch in this process is, which may take long."""
        if self._notice is not None:
            words = f"{going} replies under way, {tokens:,} of at most {most:,} tokens"
            self._notice(self._done, self._total, ", ".join(filter(None, [self._words(), words])))

    def _words(self) -> str:
        words = f"{100 * self._score / self._count:.1f} %" if self._count else ""
        if self._new and self._done < self._total:
            left = (time.monotonic() - self._started) / self._new * (self._total - self._done)
            words += f", {_duration(left)} left"
        return words


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

"""A designer that turns any text into one of a few real programs, and samplers without a model."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spade_envs.corpus import Document
from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord
from spade_train.cycle import Sample

PROGRAM = '''class Letter{name}Env(TextEnv):
    """Say a word with the secret letter in it."""

    def reset(self, seed=None):
        super().reset(seed)
        self.secret = self.rng.choice("{letters}")
        self.max_turns = {turns}
        return "Say a letter of {letters}.", {{}}

    def step(self, action):
        self.turn += 1
        hit = self.secret in action.lower()
        done = hit or self.turn >= self.max_turns
        return "yes" if hit else "no", float(hit), done, False, {{}}

    def hint(self):
        return "the secret is " + self.secret

    def solution(self):
        return self.secret
'''
BROKEN = PROGRAM.replace('"yes" if hit', "undefined_name if self.turn > 0 and hit")


def program(index: int) -> str:
    """Return one of many different programs."""
    return PROGRAM.format(name="ABCDEFGHIJKLMNOP"[index % 16], letters="etaoin"[: 2 + index % 5], turns=1 + index % 3)


def record(index: int, **fields: Any) -> EnvironmentRecord:
    """Return the record of :func:`program`."""
    return EnvironmentRecord.create(program(index), f"Letter{'ABCDEFGHIJKLMNOP'[index % 16]}Env", skill="s", **fields)


class HashDesigner:
    """Admits a program chosen by the hash of the text; refuses one text in five."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory

    def prompt(self, document: Document, skill: str, rng: random.Random, *, exemplars: bool = True) -> DesignPrompt:
        """Ask with the document, and with the exemplars that the memory offers."""
        shown = self._memory.exemplars(skill, rng, 2) if self._memory and exemplars else []
        text = document.text + "".join(f"\n{one.name} {one.statistics.win_rate}" for one in shown)
        return DesignPrompt(
            [{"role": "system", "content": "Design."}, {"role": "user", "content": text}], skill, document
        )

    def admit(self, text: str, prompt: DesignPrompt) -> Attempt:
        """Choose by hash."""
        number = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 20
        if number % 5 == 4:
            return Attempt(prompt.skill, "refused", raw=text, reason="syntax: no")
        found = record(number)
        found = EnvironmentRecord.create(found.source, found.name, skill=prompt.skill)
        if self._memory is not None and found.id in self._memory:
            return Attempt(prompt.skill, "duplicate", raw=text, source=found.source, reason="repeats")
        return Attempt(prompt.skill, "admitted", raw=text, source=found.source, record=found)

    def repeats(self, record: EnvironmentRecord, others: Iterable[EnvironmentRecord]) -> EnvironmentRecord | None:
        """Compare ids."""
        return next((other for other in others if other.id == record.id), None)


class Documents:
    """A corpus of numbered documents."""

    name, fingerprint = "numbers", "0"

    def sample(self, seed: int, index: int) -> Document:
        """Return the document of this number."""
        return Document(f"d{index}", f"document {index}")


class ScriptedSampler:
    """Answers each prompt with what ``reply`` makes of its index and ids, for the tests of the rollout."""

    def __init__(self, reply: Callable[[int, list[int]], list[int]], *, logprobs: bool = False, force: int = 0) -> None:
        self._reply, self._logprobs, self._force = reply, logprobs, force
        self.calls: list[int] = []
        self.temperatures: list[float | None] = []

    def sample(self, prompts: Sequence[list[int]], max_tokens: int, temperature: float | None = None) -> list[Sample]:
        """Answer, cut at ``max_tokens``."""
        self.calls.append(len(prompts))
        self.temperatures.append(temperature)
        texts = [self._reply(index, list(ids))[:max_tokens] for index, ids in enumerate(prompts)]
        return [Sample(ids, [-0.5] * len(ids) if self._logprobs else None) for ids in texts]

    def busy(self, prompts: int) -> bool:
        """Pretend that another rank still has work for the first ``force`` calls."""
        return prompts > 0 or len(self.calls) < self._force

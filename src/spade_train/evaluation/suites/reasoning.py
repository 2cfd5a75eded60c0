"""Reasoning Gym's hard split: 100 procedural tasks in four categories, by the package ``reasoning-gym``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from spade_envs.sandbox.types import IsolationLevel
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Question
from spade_train.evaluation.suite import TextSuite, in_turn
from spade_train.evaluation.suites.extraction import final_answer
from spade_train.pool_sources.scorer import Scorer

logger = logging.getLogger(__name__)

FIRST_SEED = 1 << 31
"""Of the questions. Seeds of training have 31 bits at most, so no question was trained on. Some tasks take no more than
32 bits; a task's questions start at a multiple of ``_STRIDE`` from here."""
_STRIDE = 1 << 16
_DRAWS = 32


@lru_cache(maxsize=1)
def hard_tasks() -> Mapping[str, Mapping[str, Any]]:
    """Return the tasks of the hard split by name, each with its ``category`` and ``config``."""
    text = (files("spade_train.evaluation") / "data" / "reasoning_gym_hard.json").read_text(encoding="utf-8")
    tasks: Mapping[str, Mapping[str, Any]] = json.loads(text)["tasks"]
    return tasks


def unknown_tasks() -> list[str]:
    """Return the names of the hard split that the installed package does not have."""
    from reasoning_gym.factory import DATASETS

    return sorted(set(hard_tasks()) - set(DATASETS))


class ReasoningSuite(TextSuite):
    """Fixed questions of every task; a reply counts if the task's own scorer gives it the whole score.

    The scorers run in a jailed process, since several of them evaluate the answer as code.
    """

    def __init__(self, name: str, protocol: Protocol, minimum_isolation: IsolationLevel = "full") -> None:
        super().__init__(name, protocol)
        self._datasets: dict[str, Any] = {}
        self._scorer = Scorer(minimum_isolation)

    @property
    def version(self) -> str:
        """The package's version.

        Raises:
            EvaluationError: if it is not installed, or lacks tasks.
        """
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("reasoning-gym")
        except PackageNotFoundError as error:
            raise EvaluationError(f"{self.name} needs reasoning-gym: pip install 'spade-envs[eval]'") from error
        if missing := unknown_tasks():
            raise EvaluationError(
                f"reasoning-gym {found} lacks {len(missing)} tasks of the hard split: {', '.join(missing)}"
            )
        return f"reasoning-gym {found}"

    def questions(self, limit: int = 0) -> list[Question]:
        """See :class:`Suite`. Only those asked for are generated: some tasks take seconds for one."""
        each = int(self.protocol.options["questions_per_task"])
        names = [
            Question(f"{task}/{index}", group=facts["category"], reference=(task, index))
            for category in self.protocol.columns
            for index in range(each)
            for task, facts in hard_tasks().items()
            if facts["category"] == category
        ]
        return [self._generated(name) for name in in_turn(names, limit)]

    def score(self, question: Question, text: str) -> tuple[float, dict[str, object]]:
        """1 if the task's scorer gives the answer 1; its partial score is kept as a detail."""
        task, entry = question.reference
        given = final_answer(text)
        if not given:
            return 0.0, {"answer": "", "partial": 0.0}
        partial = self._scorer.score(task, hard_tasks()[task]["config"], entry, given)
        return float(partial >= 1.0), {"answer": given[:2000], "partial": round(partial, 4)}

    def close(self) -> None:
        """End the scorer's process."""
        self._scorer.close()

    def _generated(self, name: Question) -> Question:
        task, index = name.reference
        entry = self._entry(task, index)
        return Question(name.id, self.messages(entry["question"]), name.group, (task, entry))

    def _entry(self, task: str, index: int) -> Any:
        """The question of this index; where the task finds none (it may search in vain), one of a later index."""
        each = int(self.protocol.options["questions_per_task"])
        for draw in range(_DRAWS):
            try:
                return self._dataset(task)[index + draw * each]
            except (ValueError, RuntimeError) as error:  # ours to try again; a fault of another kind is one to see
                logger.info("reasoning-gym %s, question %d: %s", task, index + draw * each, error)
        raise EvaluationError(f"reasoning-gym finds no question for the task {task} in {_DRAWS} draws")

    def _dataset(self, task: str) -> Any:
        if task not in self._datasets:
            import reasoning_gym

            place = list(hard_tasks()).index(task)
            size = int(self.protocol.options["questions_per_task"])
            settings = hard_tasks()[task]["config"]
            seed = FIRST_SEED + _STRIDE * place
            self._datasets[task] = reasoning_gym.create_dataset(task, size=size, seed=seed, **settings)
        return self._datasets[task]

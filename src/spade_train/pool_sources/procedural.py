"""Tasks of reasoning-gym as environments: one question, one answer, scored by the task itself."""

from __future__ import annotations

import contextlib
import difflib
from typing import Any, ClassVar

import gymnasium

from spade_envs.pools import PoolError
from spade_envs.record import EnvironmentRecord
from spade_envs.spaces import UnicodeText
from spade_train.pool_sources.scorer import Scorer
from spade_train.pool_sources.trusted import TRUSTED, Factory

PACKAGE = "reasoning-gym"
ALL = "all"
"""As the only name: every task."""
_COMPOSED = frozenset({"composite"})
"""Tasks made of other tasks, which need to be told of which."""
_MAX_TEXT = 65_536
_ATTEMPTS, _STRIDE = 8, 0x9E3779B1  # odd, so that the seeds tried are all different
_SOURCE = '''# Task of {package} {version}: trusted code, played outside the sandbox; answers are scored in a jail.
from spade_train.pool_sources import ReasoningGymEnv


class {name}(ReasoningGymEnv):
    """{summary}"""

    task = "{task}"
'''


class ReasoningGymEnv(gymnasium.Env[str, str]):
    """One question of a task, drawn by the seed; the answer ends the episode and earns its score in [0, 1].

    Subclasses set :attr:`task`. Questions are made in this process; answers are scored in a jailed one, because
    several tasks evaluate them as code.

    Args:
        scorer: shared by all environments of a pool; by default one of its own.
    """

    task: ClassVar[str] = ""
    observation_space: UnicodeText
    action_space: UnicodeText

    def __init__(self, scorer: Scorer | None = None) -> None:
        self.observation_space = UnicodeText(_MAX_TEXT)
        self.action_space = UnicodeText(_MAX_TEXT)
        self._scorer = scorer or Scorer()
        self._entry: dict[str, Any] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Ask the question that ``seed`` draws; without a seed one is drawn from :attr:`np_random`."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        self._entry = _question(self.task, chosen)
        return str(self._entry["question"]), {"task": self.task}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Score the answer."""
        if self._entry is None:
            raise RuntimeError("reset() comes before step()")
        score = self._scorer.score(self.task, {}, self._entry, action)
        return ("Right." if score >= 1.0 else "Wrong."), score, True, False, {}

    def solution(self) -> str:
        """Return the answer that comes with the question (some tasks have none, and accept any that fits)."""
        return str((self._entry or {}).get("answer"))


def _question(task: str, seed: int) -> dict[str, Any]:
    """Draw a question. A few tasks search for one and may find none; then another seed, which follows from this one.

    Raises:
        ValueError: if none of several seeds gives one.
    """
    for attempt in range(_ATTEMPTS - 1):
        with contextlib.suppress(ValueError):
            return _drawn(task, seed + attempt * _STRIDE)
    return _drawn(task, seed + (_ATTEMPTS - 1) * _STRIDE)


def _drawn(task: str, seed: int) -> dict[str, Any]:
    entry: dict[str, Any] = _reasoning_gym().create_dataset(task, seed=seed % 2**32, size=1)[0]
    return entry


def reasoning_gym_pool(names: list[str], scorer: Scorer) -> list[tuple[EnvironmentRecord, Factory]]:
    """Return a record for each task and what makes its environments.

    Raises:
        PoolError: if the package is not installed, or there is no such task.
    """
    datasets = _reasoning_gym().factory.DATASETS
    known = sorted(set(datasets) - _COMPOSED)
    wanted = known if names == [ALL] else names
    made = []
    for task in wanted:
        if task not in known:
            near = difflib.get_close_matches(task, known, 3)
            raise PoolError(
                f"{PACKAGE} has no task {task!r}"
                + (f"; did you mean {', '.join(near)}?" if near else f"; it has {', '.join(known)}")
            )
        made.append(_entry(task, datasets[task][0], scorer))
    return made


def _entry(task: str, dataset: Any, scorer: Scorer) -> tuple[EnvironmentRecord, Factory]:
    version = str(_version())
    name = "".join(part.capitalize() for part in task.split("_")) + "Env"
    name = name if name[0].isalpha() else f"Task{name}"
    parts = str(dataset.__module__).split(".")  # reasoning_gym.<category>.<task>
    category = parts[1] if len(parts) > 2 else "other"
    source = _SOURCE.format(package=PACKAGE, version=version, name=name, task=task, summary=f"{task} ({category})")
    record = EnvironmentRecord.create(
        source,
        name,
        skill=category,
        generator=f"{PACKAGE} {version}",
        licence="Apache-2.0",
        max_turns=1,
        meta={TRUSTED: f"{PACKAGE}:{task}"},
    )
    made = type(name, (ReasoningGymEnv,), {"task": task, "__module__": __name__})
    return record, lambda: made(scorer)


def _reasoning_gym() -> Any:
    try:
        import reasoning_gym
    except ImportError as error:
        raise PoolError(f"a pool of {PACKAGE} tasks needs the package: pip install 'spade-envs[eval]'") from error
    return reasoning_gym


def _version() -> str:
    from importlib.metadata import version

    return version(PACKAGE)

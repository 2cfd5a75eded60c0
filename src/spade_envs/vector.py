"""Many environments at once: all sub-environments step in one round trip to the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spade_envs.batching import run_operations
from spade_envs.env import SyntheticEnv
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox.types import IsolationLevel, Operation, Outcome
from spade_envs.spaces import UnicodeText
from spade_envs.stepping import (
    MAX_TEXT,
    check_action,
    check_render_mode,
    choose_sandbox,
    draw_seed,
    first_observation,
    render_frame,
    require_hint,
    step_values,
    turn_limit,
)

if TYPE_CHECKING:
    from spade_envs.sandbox import Program, Sandbox

Observations = tuple[str, ...]
Steps = tuple[Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class _Slot:
    """One sub-environment."""

    def __init__(self, record: EnvironmentRecord, program: Program, max_turns: int) -> None:
        self.record, self.program, self.max_turns = record, program, max_turns
        self.session: int | None = None  # the latest one; it is closed by the next reset
        self.random: np.random.Generator | None = None
        self.started = self.terminated = self.truncated = False
        self.turns = 0
        self.observation = ""
        self.frame = ""

    @property
    def running(self) -> bool:
        return self.started and not (self.terminated or self.truncated)


class SyntheticVectorEnv(VectorEnv[Observations, Sequence[Any], NDArray[Any]]):
    """Sub-environments of one record or of many, stepped together.

    Sub-environment i plays ``records[i % len(records)]`` and gives the same episodes as :class:`SyntheticEnv` in
    ``gymnasium.vector.SyncVectorEnv``. Autoreset is ``DISABLED`` unless asked for otherwise: an ended
    sub-environment waits for ``reset(options={"reset_mask": …})``; until then its action must be None, and it
    stays as it is with reward 0.

    Args:
        records: one record or several.
        num_envs: number of sub-environments; by default one for each record.
        autoreset_mode: a mode of ``gymnasium.vector.AutoresetMode`` or its value.
        render_mode: None or "ansi".
        max_turns: truncates episodes after so many turns; None takes the records', 0 leaves it to the programs.
        arguments: keyword arguments of the programs' constructors.
        workers: worker processes for each record; a worker that dies takes only its own sessions with it.
        minimum_isolation: what the system must offer; None leaves it to the process's default sandbox, which asks for
            "full" isolation.
        sandbox: where to run; None takes the process's shared sandbox.

    Raises:
        ProgramError: if a program cannot be loaded.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        records: EnvironmentRecord | Sequence[EnvironmentRecord],
        num_envs: int | None = None,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.DISABLED,
        render_mode: str | None = None,
        max_turns: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        workers: int = 1,
        minimum_isolation: IsolationLevel | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        super().__init__()
        records = [records] if isinstance(records, EnvironmentRecord) else list(records)
        self.num_envs = len(records) if num_envs is None else num_envs
        if not records or self.num_envs < 1 or workers < 1:
            raise ValueError(
                f"expected at least one record, sub-environment and worker, "
                f"got {len(records)}, {self.num_envs} and {workers}"
            )
        check_render_mode(render_mode)
        self.render_mode, self.arguments = render_mode, dict(arguments or {})
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**SyntheticEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self._text = UnicodeText(MAX_TEXT)
        self.single_observation_space, self.single_action_space = self._text, UnicodeText(MAX_TEXT)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._sandbox = choose_sandbox(sandbox, minimum_isolation)
        self._programs: dict[tuple[str, int], Program] = {}
        self._slots = []
        for index in range(self.num_envs):
            record = records[index % len(records)]
            key = (record.id, index // len(records) % workers)
            if key not in self._programs:
                self._programs[key] = self._sandbox.open(record.source, allow=record.allow)
            self._slots.append(_Slot(record, self._programs[key], turn_limit(record, max_turns)))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode in every sub-environment, or in those of ``options["reset_mask"]``.

        Args:
            seed: one seed for each sub-environment; a single one, ``s``, means ``s, s + 1, …``.
            options: ``reset_mask``: boolean array of shape ``(num_envs,)``, true where to reset; ``hint``: whether to
                append the hint to the first observation.

        Returns:
            Observations of all sub-environments, and infos of those that were reset.

        Raises:
            ProgramError: if a program cannot be reset.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = self._seeds(seed)
        options = dict(options or {})
        indices = self._masked(options.pop("reset_mask", None))
        infos: dict[str, Any] = {}
        for i, info in self._reset(indices, seeds, hinted=bool(options.get("hint"))).items():
            infos = self._add_info(infos, info, i)
        return self._observations(), infos

    def step(self, actions: Sequence[Any]) -> Steps:
        """Hand one action to every sub-environment.

        Args:
            actions: strings; None for a sub-environment that has ended and is to stay so (autoreset disabled).

        Returns:
            Observations (tuple of str), rewards (float64), terminations, truncations (bool), each of length
            ``num_envs``, and infos. A program that fails truncates its episode; ``infos["error"]`` says why.

        Raises:
            gymnasium.error.ResetNeeded: if a sub-environment has ended and gets an action, autoreset disabled.
        """
        if len(actions) != self.num_envs:
            raise gymnasium.error.InvalidAction(f"expected {self.num_envs} actions, got {len(actions)}")
        mode, slots = self.autoreset_mode, self._slots
        fresh = [i for i, slot in enumerate(slots) if not slot.running] if mode is AutoresetMode.NEXT_STEP else []
        played = self._to_play(actions, fresh)
        requests = [(slots[i].program, Operation("step", slots[i].session or 0, text)) for i, text in played]
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        news: dict[int, dict[str, Any]] = {}
        for (i, text), outcome in zip(played, run_operations(self._sandbox, requests), strict=True):
            rewards[i], news[i] = self._take(slots[i], text, outcome)
        news.update(self._reset(fresh))
        terminations = np.array([slot.terminated for slot in slots], dtype=np.bool_)
        truncations = np.array([slot.truncated for slot in slots], dtype=np.bool_)
        infos: dict[str, Any] = {}
        if mode is AutoresetMode.SAME_STEP:
            ended = [i for i, slot in enumerate(slots) if not slot.running]
            for i in ended:
                infos = self._add_info(infos, {"final_obs": slots[i].observation, "final_info": news[i]}, i)
            news.update(self._reset(ended))
        for i, info in sorted(news.items()):
            infos = self._add_info(infos, info, i)
        return self._observations(), rewards, terminations, truncations, infos

    def render(self) -> tuple[str, ...] | None:
        """Return the latest turn of every sub-environment as text in render mode "ansi"."""
        return tuple(slot.frame for slot in self._slots) if self.render_mode else None

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the programs."""
        for program in self._programs.values():
            program.close()

    def _reset(
        self, indices: Sequence[int], seeds: Sequence[int | None] | None = None, *, hinted: bool = False
    ) -> dict[int, dict[str, Any]]:
        """Start episodes in the sub-environments ``indices`` and return their infos."""
        requests: list[tuple[Program, Operation]] = []
        places: list[tuple[int, int, int]] = []  # sub-environment, program's seed, where its operations begin
        for i in indices:
            slot, seed = self._slots[i], None if seeds is None else seeds[i]
            if seed is not None or slot.random is None:
                slot.random, _ = seeding.np_random(seed)
            number, program_seed = slot.program.new_session_number(), draw_seed(slot.random, seed)
            stale, slot.session, slot.started = slot.session, number, False
            places.append((i, program_seed, len(requests)))
            operations = [Operation("make", number, self.arguments), Operation("reset", number, program_seed)]
            if hinted and not slot.record.hint:
                operations.append(Operation("hint", number))
            if stale is not None:
                operations.append(Operation("close", stale))
            requests += [(slot.program, operation) for operation in operations]
        outcomes = run_operations(self._sandbox, requests)
        infos = {}
        for i, program_seed, place in places:
            slot = self._slots[i]
            outcomes[place].unwrap()
            result, hint = outcomes[place + 1].unwrap(), None
            if hinted:
                hint = require_hint(slot.record.hint or outcomes[place + 2].unwrap(), slot.record)
            slot.observation, infos[i] = first_observation(result, program_seed, hint, self._text)
            slot.frame, slot.turns = slot.observation, 0
            slot.started, slot.terminated, slot.truncated = True, False, False
        return infos

    def _to_play(self, actions: Sequence[Any], fresh: Sequence[int]) -> list[tuple[int, str]]:
        """Return sub-environments that take their actions now, with these."""
        played, resetting = [], set(fresh)
        for i, (slot, action) in enumerate(zip(self._slots, actions, strict=True)):
            if slot.running:
                played.append((i, check_action(action)))
            elif not slot.started and i not in resetting:
                raise gymnasium.error.ResetNeeded("call reset() before step()")
            elif i not in resetting and action is not None:
                raise gymnasium.error.ResetNeeded(
                    f"the episode of sub-environment {i} has ended: reset it with options={{'reset_mask': mask}}, "
                    f"or give it the action None"
                )
        return played

    def _take(self, slot: _Slot, action: str, outcome: Outcome) -> tuple[float, dict[str, Any]]:
        result = outcome.error or outcome.value
        slot.turns += 1
        slot.observation, reward, slot.terminated, slot.truncated, info = step_values(
            result, self._text, slot.turns == slot.max_turns
        )
        if self.render_mode:
            slot.frame = render_frame(action, slot.observation, reward, slot.terminated, slot.truncated, info)
        return reward, info

    def _observations(self) -> Observations:
        return tuple(slot.observation for slot in self._slots)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"expected one seed for each of {self.num_envs} sub-environments, got {len(seed)}")
        return list(seed)

    def _masked(self, mask: Any) -> list[int]:
        if mask is None:
            return list(range(self.num_envs))
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask']: expected a boolean numpy array of shape ({self.num_envs},), got {mask!r}"
            )
        if not mask.any():
            raise ValueError("options['reset_mask']: expected at least one True")
        return [int(i) for i in np.flatnonzero(mask)]

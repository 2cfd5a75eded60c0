"""Generated programs as ``gymnasium`` environments, every record with a class of its own."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from spade_envs.batching import clip_reward, describe
from spade_envs.episode import HINT_TEMPLATE
from spade_envs.page import render_page
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox.types import (
    Operation,
    ProgramDied,
    ProgramError,
    ProgramQuarantined,
    ProgramTimeout,
    ResetResult,
    StepResult,
)
from spade_envs.spaces import UnicodeText

if TYPE_CHECKING:
    from spade_envs.sandbox import Program, Sandbox

MAX_TEXT = 65_536
"""Longest observation and action, in characters; longer observations are cut."""

SEED_BOUND = 2**31
"""Seeds that an environment draws for its program lie below this."""


class SyntheticEnv(gymnasium.Env[str, str]):
    """A generated program, stepped in a sandboxed worker process; subclasses come from :func:`make_class`.

    Every ``reset`` makes a fresh instance of the program. A program that fails in ``step`` (raises, times out, dies)
    ends the episode: truncated, reward 0, ``info["error"]``; the next ``reset`` starts a new worker.

    Args:
        render_mode: None or "ansi".
        max_turns: handed to the program's constructor; None takes the record's, or the program's own default.
        sandbox: where to run; None takes the process's default sandbox.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]
    record: ClassVar[EnvironmentRecord]
    observation_space: UnicodeText
    action_space: UnicodeText

    def __init__(
        self, *, render_mode: str | None = None, max_turns: int | None = None, sandbox: Sandbox | None = None
    ) -> None:
        if not hasattr(self, "record"):
            raise TypeError("SyntheticEnv has no program of its own; use make_class(record) or gymnasium.make(id)")
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.max_turns = max_turns
        self.observation_space = UnicodeText(MAX_TEXT)
        self.action_space = UnicodeText(MAX_TEXT)
        self._sandbox = sandbox
        self._program: Program | None = None
        self._session: int | None = None  # None: the worker holds nothing of ours
        self._running = False
        self._frame = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: the program's seed, and the seed of :attr:`np_random`; None draws the program's seed from it.
            options: ``{"hint": True}`` appends the hint to the observation and puts it into ``info["hint"]``.

        Returns:
            The first observation and an info dictionary with the program's ``seed``.

        Raises:
            ProgramError: if the program cannot be loaded or reset, or is quarantined after repeated failures.
            ValueError: if a hint is asked for and there is none.
        """
        super().reset(seed=seed)
        program_seed = draw_seed(self.np_random, seed)
        program = self._open()
        number, stale = program.new_session_number(), self._session
        self._session, self._running = None, False
        hinted = bool((options or {}).get("hint"))
        operations = [
            Operation("make", number, constructor_arguments(self.record, self.max_turns)),
            Operation("reset", number, program_seed),
            *([Operation("hint", number)] if hinted and not self.record.hint else []),
        ]
        closing = [] if stale is None else [Operation("close", stale)]
        made, reset, *asked = program.run(operations + closing)[: len(operations)]
        for outcome in (made, reset, *asked):
            outcome.unwrap()
        self._session, self._running = number, True
        hint = require_hint(asked[0].value if asked else self.record.hint, self.record) if hinted else None
        observation, info = first_observation(reset.value, program_seed, hint, self.observation_space)
        self._frame = observation
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Hand ``action`` to the program.

        Returns:
            Observation, reward in [-1, 1], terminated, truncated, info.

        Raises:
            gymnasium.error.ResetNeeded: before the first ``reset`` and after the end of an episode.
            gymnasium.error.InvalidAction: if ``action`` is not a string.
        """
        program, session = self._current("step")
        outcome = program.run([Operation("step", session, check_action(action))])[0]
        observation, reward, terminated, truncated, info = step_values(
            outcome.error or outcome.value, self.observation_space
        )
        if outcome.error is not None and session_is_lost(outcome.error):
            self._session = None
        self._running = not (terminated or truncated)
        self._frame = render_frame(action, observation, reward, terminated, truncated, info)
        return observation, reward, terminated, truncated, info

    def render(self) -> str | None:
        """Return the latest turn as text in render mode "ansi"."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() was called on an environment without a render mode; pass render_mode='ansi' to make()"
            )
            return None
        return self._frame

    def close(self) -> None:
        """Stop the program; a later ``reset`` starts it again."""
        if self._program is not None:
            self._program.close()
        self._program, self._session, self._running = None, None, False

    def solution(self) -> list[str] | None:
        """Return the actions that win from here, by the program's own account; None where it offers none.

        Raises:
            ProgramError: if the program fails.
        """
        return self._ask("solution")  # type: ignore[no-any-return]

    def tools(self) -> list[dict[str, Any]]:
        """Return the program's OpenAI function schemas, for tool-use environments.

        Raises:
            ProgramError: if the program fails.
        """
        return list(self._ask("tools") or [])

    def _ask(self, operation: str) -> Any:
        program, session = self._current(operation)
        return program.run([Operation(operation, session)])[0].unwrap()

    def _current(self, operation: str) -> tuple[Program, int]:
        if self._program is None or self._session is None or not self._running:
            raise gymnasium.error.ResetNeeded(
                f"the episode has ended or never started: call reset() before {operation}()"
            )
        return self._program, self._session

    def _open(self) -> Program:
        if self._program is None:
            if self._sandbox is None:
                from spade_envs.sandbox import default_sandbox

                self._sandbox = default_sandbox()
            self._program = self._sandbox.open(self.record.source, allow=self.record.allow)
        return self._program

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a fresh environment of the same record; the copy uses its process's default sandbox."""
        return _rebuild, (self.record, self.render_mode, self.max_turns, self.spec)


_classes: weakref.WeakValueDictionary[str, type[SyntheticEnv]] = weakref.WeakValueDictionary()


def make_class(record: EnvironmentRecord) -> type[SyntheticEnv]:
    """Return the environment class of ``record``.

    The class has the record's class name, its page in Gymnasium's form as docstring, and the record's id, skill and
    kind in its ``metadata``. Equal records give the same class for as long as it is in use.
    """
    known = _classes.get(record.id)
    if known is not None and known.record == record:
        return known
    space = repr(UnicodeText(MAX_TEXT))
    body = {
        "__doc__": render_page(record, space, space),
        "__module__": __name__,
        "record": record,
        "metadata": {
            **SyntheticEnv.metadata,
            "record_id": record.id,
            "name": record.name,
            "skill": record.skill,
            "kind": record.kind,
        },
    }
    made = type(record.name, (SyntheticEnv,), body)
    _classes[record.id] = made
    return made


def _rebuild(record: EnvironmentRecord, render_mode: str | None, max_turns: int | None, spec: Any) -> SyntheticEnv:
    env = make_class(record)(render_mode=render_mode, max_turns=max_turns)
    env.spec = spec
    return env


# What the single and the vector environment have in common.


def constructor_arguments(record: EnvironmentRecord, max_turns: int | None) -> dict[str, Any]:
    """Return the keyword arguments of the program's constructor."""
    turns = record.max_turns if max_turns is None else max_turns
    return {"max_turns": turns} if turns else {}


def draw_seed(generator: np.random.Generator, seed: int | None) -> int:
    """Return the program's seed: the one given (folded to 63 bits, what the sandbox's wire takes) or a drawn one."""
    return int(generator.integers(SEED_BOUND)) if seed is None else int(seed) % 2**63


def require_hint(hint: str | None, record: EnvironmentRecord) -> str:
    """Return ``hint``, or raise ValueError if there is none."""
    if not hint:
        raise ValueError(f"{record.env_id} has no hint: reset it without options['hint']")
    return hint


def first_observation(
    result: ResetResult, seed: int, hint: str | None, space: UnicodeText
) -> tuple[str, dict[str, Any]]:
    """Return observation and info of a reset; a hint survives the clipping of a long observation."""
    info = {**result.info, "seed": seed}
    if hint is None:
        return space.clip(result.observation), info
    appendix = space.clip(HINT_TEMPLATE.replace("{hint}", hint))
    return result.observation[: space.max_length - len(appendix)] + appendix, {**info, "hint": hint}


def step_values(result: StepResult | ProgramError, space: UnicodeText) -> tuple[str, float, bool, bool, dict[str, Any]]:
    """Return what ``step`` returns for a program's result or failure."""
    if isinstance(result, ProgramError):
        return space.clip(""), 0.0, False, True, {"error": describe(result)}
    return (
        space.clip(result.observation),
        clip_reward(result.reward),
        result.terminated,
        result.truncated,
        result.info,
    )


def session_is_lost(error: ProgramError) -> bool:
    """Whether the worker may be gone with the session, so that there is nothing to close."""
    return isinstance(error, (ProgramDied, ProgramTimeout, ProgramQuarantined))


def check_action(action: Any) -> str:
    """Return ``action`` as a plain string.

    Raises:
        gymnasium.error.InvalidAction: if it is not a string.
    """
    if not isinstance(action, str):
        raise gymnasium.error.InvalidAction(f"expected an action of type str, got {type(action).__name__}")
    return str(action)


def check_render_mode(render_mode: str | None) -> None:
    """Raise ValueError for a render mode that there is not."""
    if render_mode not in (None, "ansi"):
        raise ValueError(f"expected render_mode None or 'ansi', got {render_mode!r}")


def render_frame(
    action: str, observation: str, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
) -> str:
    """Return one turn as text."""
    end = "terminated" if terminated else "truncated" if truncated else ""
    state = f"[reward {reward:g}{', ' + end if end else ''}]"
    return "\n".join(part for part in (f"> {action}", observation, str(info.get("error", "")), state) if part)

"""Generated programs as ``gymnasium`` environments, every record with a class of its own."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium

from spade_envs.page import render_page
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox.types import IsolationLevel, Operation
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
    from gymnasium.envs.registration import EnvSpec

    from spade_envs.sandbox import Program, Sandbox


class SyntheticEnv(gymnasium.Env[str, str]):
    """A generated program, stepped in a sandboxed worker process; subclasses come from :func:`make_class`.

    Every ``reset`` makes a fresh instance of the program. A program that fails in ``step`` (raises, times out, dies)
    ends the episode: truncated, reward 0, ``info["error"]``; the next ``reset`` starts a new worker.

    Args:
        render_mode: None or "ansi".
        max_turns: truncates an episode after so many turns, beside the program's own limit; None takes the record's,
            0 leaves it to the program.
        arguments: keyword arguments of the program's constructor, JSON-safe.
        minimum_isolation: what the system must offer; None leaves it to the process's default sandbox, which asks for
            "full" isolation.
        sandbox: where to run; None takes the process's shared sandbox.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]
    record: ClassVar[EnvironmentRecord]
    observation_space: UnicodeText
    action_space: UnicodeText

    def __init__(
        self,
        *,
        render_mode: str | None = None,
        max_turns: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        minimum_isolation: IsolationLevel | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        if not hasattr(self, "record"):
            raise TypeError("SyntheticEnv has no program of its own; use make_class(record) or gymnasium.make(id)")
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.max_turns = turn_limit(self.record, max_turns)
        self.arguments = dict(arguments or {})
        self.minimum_isolation = minimum_isolation
        self.observation_space = UnicodeText(MAX_TEXT)
        self.action_space = UnicodeText(MAX_TEXT)
        self._sandbox = sandbox
        self._program: Program | None = None
        self._session: int | None = None  # the latest one; it is closed by the next reset
        self._running = False
        self._turns = 0
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
        self._session, self._running = number, False
        hinted = bool((options or {}).get("hint"))
        operations = [
            Operation("make", number, self.arguments),
            Operation("reset", number, program_seed),
            *([Operation("hint", number)] if hinted and not self.record.hint else []),
        ]
        closing = [] if stale is None else [Operation("close", stale)]
        made, reset, *asked = program.run(operations + closing)[: len(operations)]
        for outcome in (made, reset, *asked):
            outcome.unwrap()
        hint = require_hint(asked[0].value if asked else self.record.hint, self.record) if hinted else None
        observation, info = first_observation(reset.value, program_seed, hint, self.observation_space)
        self._frame, self._turns, self._running = observation, 0, True
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
        self._turns += 1
        observation, reward, terminated, truncated, info = step_values(
            outcome.error or outcome.value, self.observation_space, self._turns == self.max_turns
        )
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
            sandbox = choose_sandbox(self._sandbox, self.minimum_isolation)
            self._program = sandbox.open(self.record.source, allow=self.record.allow)
        return self._program

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a fresh environment of the same record; the copy uses its process's shared sandbox."""
        arguments = {
            "render_mode": self.render_mode,
            "max_turns": self.max_turns,
            "arguments": self.arguments,
            "minimum_isolation": self.minimum_isolation,
        }
        return _rebuild, (self.record, arguments, self.spec)


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


def _rebuild(record: EnvironmentRecord, arguments: dict[str, Any], spec: EnvSpec | None) -> SyntheticEnv:
    env = make_class(record)(**arguments)
    env.spec = spec
    return env

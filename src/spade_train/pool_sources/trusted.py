"""Environments of installed packages beside generated programs: the same calls, played in this process.

A hand-written environment (a procedural task, a registered Gymnasium environment) needs imports and data files that
the sandbox refuses, and is code that its user installed. A :class:`TrustedSandbox` plays it in process and every other
program in the sandbox as always, so whoever plays does not see a difference.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium

from spade_envs.contract import TextEnv
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Limits, Operation, Outcome, Program, ResetResult, Sandbox, SandboxError, StepResult
from spade_envs.sandbox.types import IsolationLevel, ProgramDied, ProgramError, ProgramRaised, ProtocolViolation

Factory = Callable[[], gymnasium.Env[Any, Any]]
"""Makes one environment object; each session has its own."""

TRUSTED = "trusted"
"""In ``meta`` of records of such environments: where they come from."""

_LONGEST_MESSAGE = 500
_PLAIN = (str, int, float, bool, type(None))


def is_procedural(record: EnvironmentRecord) -> bool:
    """Whether each seed of an environment is a question of its own, as those of installed tasks are.

    Plays of one question are a group, as in GRPO on prompts and as in SPADE's own runs on RLVE; a task is not one, for
    its questions differ in difficulty. A generated program is played on different seeds, as published: its episodes
    are those of one environment.
    """
    return TRUSTED in record.meta


class TrustedSandbox(Sandbox):
    """A sandbox that plays some sources in process.

    Args:
        trusted: what makes the environment, by the source of its record. Every other source runs in the jail.
        limits: of the programs in the jail. Trusted code is bound by nothing but the length of its observations.
        max_workers: likewise.
        minimum_isolation: likewise.
    """

    def __init__(
        self,
        trusted: Mapping[str, Factory],
        limits: Limits | None = None,
        *,
        max_workers: int = 64,
        minimum_isolation: IsolationLevel = "full",
    ) -> None:
        super().__init__(limits or Limits(), max_workers=max_workers, minimum_isolation=minimum_isolation)
        self._trusted = dict(trusted)

    def open(self, source: str, *, allow: Sequence[str] = (), twin: bool = False, shared: bool = False) -> Program:
        """Open a trusted environment, or load a program in a worker; see :meth:`Sandbox.open`."""
        factory = self._trusted.get(source)
        if factory is not None:
            return TrustedProgram(self, source, factory)
        return super().open(source, allow=allow, twin=twin, shared=shared)

    def run_many(self, batches: Sequence[tuple[Program, Sequence[Operation]]]) -> list[list[Outcome]]:
        """Carry out one batch for each program; see :meth:`Sandbox.run_many`."""
        jailed = [pair for pair in batches if not isinstance(pair[0], TrustedProgram)]
        answers = iter(super().run_many(jailed) if jailed else ())
        return [
            program.perform(operations) if isinstance(program, TrustedProgram) else next(answers)
            for program, operations in batches
        ]

    def vacate(self, program: Program) -> None:
        """Let go of what runs ``program``."""
        if isinstance(program, TrustedProgram):
            program.end()
        else:
            super().vacate(program)


class TrustedProgram(Program):
    """An environment of an installed package under the calls of a :class:`~spade_envs.sandbox.Program`.

    Whatever it raises is a :class:`~spade_envs.sandbox.ProgramError`: the episode fails, not the run. The move handed
    to it is what stands in the last ``\\boxed{…}`` of a reply, else the whole reply, stripped.
    """

    def __init__(self, sandbox: TrustedSandbox, source: str, factory: Factory) -> None:
        super().__init__(sandbox, source, (), False)
        self._factory = factory
        self._environments: dict[int, gymnasium.Env[Any, Any]] = {}

    def perform(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Carry out ``operations`` in order.

        Raises:
            SandboxError: if what scores answers in a jail failed.
        """
        return [self._outcome(operation) for operation in operations]

    def end(self) -> None:
        """Close every environment."""
        for number in list(self._environments):
            self._outcome(Operation("close", number))

    def _outcome(self, operation: Operation) -> Outcome:
        try:
            return Outcome(self._perform(*operation))
        except SandboxError:
            raise
        except ProgramError as error:
            return Outcome(error=error)
        except Exception as error:
            return Outcome(error=ProgramRaised(type(error).__name__, str(error)[:_LONGEST_MESSAGE]))

    def _perform(self, name: str, session: int, argument: Any) -> Any:
        if name == "make":
            self._environments[session] = self._factory(**(argument or {}))
            return None
        if name == "close":
            environment = self._environments.pop(session, None)
            if environment is not None:
                environment.close()
            return None
        environment = self._environments.get(session)
        if environment is None:
            raise ProgramDied(f"session {session} was closed, or never made; make it first")
        match name:
            case "reset":
                observation, info = environment.reset(seed=argument)
                return ResetResult(self._text(observation), _plain(info))
            case "step":
                return self._step(environment, argument)
            case "hint" | "solution":
                return _offered(environment, name)
            case "tools":
                return []
            case "copy":
                self._environments[argument] = copy.deepcopy(environment)
                return None
        raise ProtocolViolation(f"a trusted environment has no operation {name!r}")

    def _step(self, environment: gymnasium.Env[Any, Any], reply: str) -> StepResult:
        action = TextEnv.answer(reply)
        if not environment.action_space.contains(action):
            wanted = str(environment.action_space)[:_LONGEST_MESSAGE]
            return StepResult(f"This is no move here. A move is one of {wanted}.", 0.0, False, False, {"illegal": True})
        observation, reward, terminated, truncated, info = environment.step(action)
        if not math.isfinite(value := float(reward)):
            raise ProtocolViolation(f"the reward must be a finite number, got {reward!r}")
        return StepResult(self._text(observation), value, bool(terminated), bool(truncated), _plain(info))

    def _text(self, observation: Any) -> str:
        if not isinstance(observation, str):
            raise ProtocolViolation(f"an observation must be text, got {type(observation).__name__}")
        return str(observation)[: self._sandbox.limits.max_observation_chars]


def _offered(environment: gymnasium.Env[Any, Any], method: str) -> Any:
    """What an optional method of the environment says; None if it has none."""
    function = getattr(environment.unwrapped, method, None)
    said = None if function is None else function()
    return [said] if method == "solution" and isinstance(said, str) else said


def _plain(info: Any) -> dict[str, Any]:
    """The entries of an info that JSON can say."""
    items = info.items() if isinstance(info, Mapping) else ()
    return {str(key): value for key, value in items if type(value) in _PLAIN}

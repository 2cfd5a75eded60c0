"""Running code that a model wrote: static policy, guarded namespace, jailed worker processes."""

from spade_envs.sandbox.default import default_sandbox, set_default_sandbox
from spade_envs.sandbox.pool import Sandbox
from spade_envs.sandbox.session import Program, Session
from spade_envs.sandbox.types import (
    IsolationLevel,
    IsolationReport,
    Limits,
    Operation,
    Outcome,
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramInfo,
    ProgramQuarantined,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
    Reason,
    ResetResult,
    SandboxError,
    StepResult,
)

__all__ = [
    "IsolationLevel",
    "IsolationReport",
    "Limits",
    "Operation",
    "Outcome",
    "PolicyViolation",
    "Program",
    "ProgramDied",
    "ProgramError",
    "ProgramInfo",
    "ProgramQuarantined",
    "ProgramRaised",
    "ProgramTimeout",
    "ProtocolViolation",
    "Reason",
    "ResetResult",
    "Sandbox",
    "SandboxError",
    "Session",
    "StepResult",
    "default_sandbox",
    "set_default_sandbox",
]

"""The sandbox that everything in one process shares unless it is given another one."""

from __future__ import annotations

from spade_envs.sandbox.pool import Sandbox

_default: Sandbox | None = None


def default_sandbox() -> Sandbox:
    """Return this process's shared sandbox, made on first use and closed at exit.

    A forked child may go on using it: it gets worker processes of its own.
    """
    global _default
    if _default is None:
        _default = Sandbox()
    return _default


def set_default_sandbox(sandbox: Sandbox | None) -> None:
    """Make ``sandbox`` the one that :func:`default_sandbox` returns, e.g. one with other limits or isolation."""
    global _default
    _default = sandbox

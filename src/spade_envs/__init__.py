"""Synthesise, sandbox, validate, store, search and share environments as real ``gymnasium`` environments."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spade_envs.registration import register, register_default

if TYPE_CHECKING:
    from spade_envs.env import SyntheticEnv, make_class
    from spade_envs.memory import Memory
    from spade_envs.record import EnvironmentRecord
    from spade_envs.spaces import UnicodeText
    from spade_envs.vector import SyntheticVectorEnv

__version__ = "0.1.0"

__all__ = [
    "EnvironmentRecord",
    "Memory",
    "SyntheticEnv",
    "SyntheticVectorEnv",
    "UnicodeText",
    "__version__",
    "make_class",
    "register",
]

_LAZY = {
    "EnvironmentRecord": "record",
    "Memory": "memory",
    "SyntheticEnv": "env",
    "SyntheticVectorEnv": "vector",
    "UnicodeText": "spaces",
    "make_class": "env",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'spade_envs' has no attribute {name!r}")
    return getattr(import_module(f"spade_envs.{_LAZY[name]}"), name)


register_default()

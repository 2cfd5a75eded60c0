"""Environments of a memory as Gymnasium ids.

``import spade_envs`` registers the default memory; :func:`register` adds another one or brings it up to date. The
entries of ``gymnasium.registry`` are written directly: ``gymnasium.register`` walks over the whole registry for
every id and warns when the id is there already.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from spade_envs.memory import Memory, StoreError, default_home
from spade_envs.record import EnvironmentRecord

if TYPE_CHECKING:
    from spade_envs.env import SyntheticEnv
    from spade_envs.vector import SyntheticVectorEnv

ENTRY_POINT = "spade_envs.registration:make_env"
VECTOR_ENTRY_POINT = "spade_envs.registration:make_vector_env"


def register(memory: Memory | str | Path | None = None) -> list[str]:
    """Make every environment of ``memory`` available to ``gymnasium.make`` and return the ids.

    May be called again at any time: ids of new records are added, ids of records that the memory no longer holds
    are taken out. A spawned process knows the default memory only; hand it the ``EnvSpec``, which names its memory,
    where another one is needed.

    Args:
        memory: a memory or its folder; None is the default memory.

    Raises:
        StoreError: if the folder holds something that is not a memory.
    """
    folder = _folder(memory)
    specs = {spec.id: spec for spec in (_spec(id, name, folder) for id, name in Memory.ids(folder))}
    stale = [
        known.id
        for known in gymnasium.registry.values()
        if known.entry_point == ENTRY_POINT and known.kwargs.get("memory") == folder and known.id not in specs
    ]
    for env_id in stale:
        del gymnasium.registry[env_id]
    gymnasium.registry.update(specs)
    return list(specs)


def register_default() -> None:
    """Register the default memory; what is wrong with it becomes a warning, so that an import never fails."""
    try:
        register()
    except (StoreError, OSError) as error:
        warnings.warn(f"the default memory was not registered with gymnasium: {error}", stacklevel=3)


def make_env(record_id: str, memory: str | None = None, **arguments: Any) -> SyntheticEnv:
    """Make the environment of a stored record; the entry point of every registered id.

    Args:
        record_id: the record's id.
        memory: the folder of the memory; None is the default memory.
        arguments: those of :class:`~spade_envs.env.SyntheticEnv`.

    Raises:
        UnknownRecord: if the memory does not hold the record.
    """
    from spade_envs.env import make_class

    return make_class(_record(record_id, memory))(**arguments)


make_env.metadata = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[attr-defined]  # gymnasium.make looks


def make_vector_env(
    record_id: str, memory: str | None = None, max_episode_steps: int | None = None, **arguments: Any
) -> SyntheticVectorEnv:
    """Make a vector environment of a stored record; the vector entry point of every registered id.

    Args:
        record_id: the record's id.
        memory: the folder of the memory; None is the default memory.
        max_episode_steps: Gymnasium's name for ``max_turns``.
        arguments: those of :class:`~spade_envs.vector.SyntheticVectorEnv`, ``num_envs`` among them.

    Raises:
        UnknownRecord: if the memory does not hold the record.
    """
    from spade_envs.vector import SyntheticVectorEnv

    if max_episode_steps is not None:
        arguments.setdefault("max_turns", max_episode_steps)
    return SyntheticVectorEnv(_record(record_id, memory), **arguments)


def _folder(memory: Memory | str | Path | None) -> str:
    path = default_home() if memory is None else memory.path if isinstance(memory, Memory) else Path(memory)
    return str(path.expanduser().absolute())


def _spec(id: str, name: str, folder: str) -> EnvSpec:
    return EnvSpec(
        id=EnvironmentRecord(id=id, source="", name=name).env_id,
        entry_point=ENTRY_POINT,
        vector_entry_point=VECTOR_ENTRY_POINT,
        kwargs={"record_id": id, "memory": folder},
    )


def _record(record_id: str, memory: str | None) -> EnvironmentRecord:
    with Memory.open(memory, read_only=True) as opened:
        return opened.get(record_id)

"""Registered Gymnasium environments that speak text, for example ones written by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
from gymnasium.error import Error as GymnasiumError

from spade_envs.pools import PoolError
from spade_envs.record import EnvironmentRecord
from spade_train.pool_sources.trusted import TRUSTED, Factory

_SOURCE = '''# A registered Gymnasium environment: trusted code, played outside the sandbox.
import gymnasium


class {name}:
    """Registered as {id}."""

    def __new__(cls, **arguments):
        return gymnasium.make("{id}", **arguments)
'''


def gymnasium_pool(ids: list[str]) -> list[tuple[EnvironmentRecord, Factory]]:
    """Return a record for each environment and what makes it; ``module:Name-v0`` imports ``module`` first.

    Raises:
        PoolError: if an environment cannot be made, or its observations or actions are not text.
    """
    return [_entry(name) for name in ids]


def _entry(env_id: str) -> tuple[EnvironmentRecord, Factory]:
    make: Factory = partial(gymnasium.make, env_id, disable_env_checker=True)
    try:
        environment = make()
    except (GymnasiumError, ImportError, ValueError, TypeError) as error:
        raise PoolError(
            f"the environment {env_id!r} cannot be made: {error}. If the module that registers it is not imported "
            f"yet, name it: gymnasium:my_module:{env_id.rpartition(':')[2]}"
        ) from error
    try:
        _require_text(env_id, environment)
        spec = environment.spec
    finally:
        environment.close()
    bare = env_id.rpartition(":")[2].rpartition("/")[2].rpartition("-v")[0] or env_id
    name = "".join(letter for letter in bare if letter.isascii() and letter.isalnum())
    name = f"{name if name[:1].isalpha() else f'Registered{name}'}"[:60].removesuffix("Env") + "Env"
    record = EnvironmentRecord.create(
        _SOURCE.format(name=name, id=env_id),
        name,
        generator="gymnasium",
        max_turns=int((spec.max_episode_steps if spec else None) or 0),
        meta={TRUSTED: f"gymnasium:{env_id}"},
    )
    return record, make


def _require_text(env_id: str, environment: gymnasium.Env[Any, Any]) -> None:
    for what, space in (("observations", environment.observation_space), ("actions", environment.action_space)):
        if not isinstance(space, gymnasium.spaces.Text):
            raise PoolError(
                f"{env_id}: a language model plays text, but the {what} of this environment are {space}; wrap it so "
                f"that both are gymnasium.spaces.Text (or spade_envs' UnicodeText, for any characters)"
            )

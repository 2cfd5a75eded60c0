"""What one cycle is made of."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import ConfigError, at_least, one_of, setting

MODES = ("self_play", "fixed_pool")


@dataclass
class CycleSettings:
    """Where environments come from, and how many are written and played in a cycle."""

    mode: str = setting("self_play", "'self_play', or 'fixed_pool': the agent alone on the environments in pool")
    corpus: str = setting("builtin:nano", "grounding documents: JSONL, Parquet, a folder of texts, or builtin:nano")
    prompts: str = setting("nano", "prompt set: nano, games, tool_use, or a folder")
    memory: str | None = setting(None, "folder of the environment memory; default <output_dir>/memory")
    memory_capacity: int | None = setting(None, "newest environments for exemplars and replays; default: 200")
    pool: str | None = setting(
        None,
        "fixed_pool: a memory's folder, an exported or published pool, reasoning-gym:TASK[,TASK…] or all, "
        "gymnasium:ID[,ID…]",
    )

    documents: int = setting(3, "documents of one cycle")
    designs: int = setting(6, "programs written for each document")
    plays: int = setting(6, "plain episodes of each environment, and as many hinted ones")
    replay_share: float = setting(0.25, "share of the played environments that come from the memory")
    replay_plays: int = setting(64, "plain episodes after which an environment is not replayed any more")
    environments: int = setting(18, "fixed_pool: environments of one cycle")

    def check_cycle(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        one_of(self, {"mode": MODES})
        at_least(self, 1, ["documents", "designs", "plays", "environments"])
        if self.plays < 2 or self.designs < 2:
            raise ConfigError("plays and designs must be at least 2: rows are compared within their group")
        if not 0.0 <= self.replay_share < 1.0:
            raise ConfigError(f"replay_share must lie in [0, 1), got {self.replay_share}")
        if self.mode == "fixed_pool" and not self.pool:
            raise ConfigError(
                "fixed_pool training needs pool: a memory's folder, a pool, reasoning-gym:TASK, gymnasium:ID"
            )

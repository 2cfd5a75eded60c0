"""What one cycle is made of."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import ConfigError, at_least, launched_ranks, one_of, setting

MODES = ("self_play", "fixed_pool")


@dataclass
class CycleSettings:
    """Where environments come from, how many are written and played in a cycle, which roles learn."""

    mode: str = setting("self_play", "'self_play', or 'fixed_pool': the agent alone on the environments in pool")
    corpus: str = setting("builtin:nano", "grounding documents: JSONL, Parquet, folder of texts, builtin:nano, or none")
    prompts: str = setting("nano", "prompt set: nano, small, games, tool_use, or a folder")
    skills: str = setting("", "skills of the prompt set that are designed for, comma-separated; default: all")
    exemplars: bool = setting(True, "false: the designer is shown nothing from the memory")
    memory: str | None = setting(None, "folder of the environment memory; default <output_dir>/memory")
    memory_capacity: int | None = setting(None, "newest environments for exemplars and replays; default: 200")
    pool: str | None = setting(
        None,
        "fixed_pool: a memory's folder, an exported or published pool, several of these with commas between them, "
        "reasoning-gym:TASK[,TASK…] or all, gymnasium:ID[,ID…]",
    )

    documents: int = setting(3, "documents of one cycle")
    designs: int = setting(6, "programs written for each document")
    plays: int = setting(6, "plain episodes of each environment, and as many hinted ones")
    regenerate_every: int = setting(1, "k: rollouts in which one set of environments is played (games 4, tool use 8)")
    active_skills: int = setting(0, "skills of one window, the next ones in the next (paper: 3 of 6); 0: all in turn")
    replay_share: float = setting(0.25, "share of the played environments that come from the memory")
    replay_plays: int = setting(64, "plain episodes after which an environment is not replayed any more")
    easy_share: float = setting(0.0, "share of the replays that are mastered environments, against forgetting")
    environments: int = setting(18, "fixed_pool: environments of one cycle")
    pool_hints: bool = setting(False, "fixed_pool: play with the environments' hints too, to measure regret")

    train_designer: bool = setting(True, "false: programs are written with the adapter off, or by designer_model")
    train_hints: bool = setting(False, "train on the hints that the policy writes; a hint is paid its regret")
    train_agent: bool = setting(True, "false: episodes are played and pay the designer, but are not trained on")
    designer_model: str | None = setting(None, "another model that writes the programs, e.g. openai:NAME; not trained")
    hints: int = setting(1, "hints written for each environment; they share the hinted plays")

    def check_cycle(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        one_of(self, {"mode": MODES})
        at_least(self, 1, ["documents", "designs", "plays", "environments", "regenerate_every", "hints"])
        at_least(self, 0, ["active_skills"])
        if self.plays < 2:
            raise ConfigError("plays must be at least 2: episodes are compared within their environment")
        documents = self.documents * launched_ranks()
        if self.designs < 2 and not (self.active_skills and documents >= 2 * self.active_skills):
            raise ConfigError(
                "designs must be at least 2, or the documents of all ranks at least twice active_skills: rows are "
                "compared within their group, the skill"
            )
        if not 0.0 <= self.replay_share < 1.0:
            raise ConfigError(f"replay_share must lie in [0, 1), got {self.replay_share}")
        if not 0.0 <= self.easy_share <= 1.0:
            raise ConfigError(f"easy_share must lie in [0, 1], got {self.easy_share}")
        if self.hints > self.plays:
            raise ConfigError(f"hints ({self.hints}) must not exceed plays ({self.plays}): each needs an episode")
        if self.mode == "fixed_pool":
            self._check_pool()
        self._check_roles()

    def _check_pool(self) -> None:
        if not self.pool:
            raise ConfigError(
                "fixed_pool training needs pool: a memory's folder, a pool, reasoning-gym:TASK, gymnasium:ID"
            )
        if self.regenerate_every > 1:
            raise ConfigError("regenerate_every must be 1 in fixed_pool training: nothing is written there")
        if not self.train_agent:
            raise ConfigError("train_agent must be true in fixed_pool training: there is no other role")

    def _check_roles(self) -> None:
        if self.designer_model and self.train_designer:
            raise ConfigError("train_designer must be false with designer_model: its programs are not the policy's")
        if not (self.train_designer or self.train_hints or self.train_agent):
            raise ConfigError("nothing is trained: set train_designer, train_hints or train_agent to true")
        if self.mode == "self_play" and not (self.train_designer or self.designer_model) and _merges(self):
            raise ConfigError(
                "train_designer: false samples the programs with the adapter off, and a vLLM engine with merged "
                "weights has no base any more: set lora_sync to adapter, use_vllm to false, or name a designer_model"
            )


def _merges(settings: object) -> bool:
    return bool(getattr(settings, "use_vllm", False)) and getattr(settings, "lora_sync", "") == "merge"

"""The policy and its adapter."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import at_least, setting


@dataclass
class PolicySettings:
    """Which model learns, and how its adapter is made."""

    model: str = setting("nano", "policy: 'nano' (embedded), a directory, or a Hugging Face id")
    lora_r: int = setting(16, "rank of the LoRA adapter")
    lora_alpha: int = setting(32, "scale of the LoRA adapter")
    lora_targets: str = setting("q_proj,k_proj,v_proj,o_proj", "adapted modules, comma-separated, or 'all-linear'")

    def check_policy(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        at_least(self, 1, ["lora_r"])

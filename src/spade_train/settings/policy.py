"""The policy and its adapter."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import ConfigError, at_least, one_of, setting

THINKING = ("default", "on", "off")
SYNCS = ("auto", "adapter", "merge")


@dataclass
class PolicySettings:
    """Which model learns, how its adapter is made, and whether it thinks before it answers."""

    model: str = setting("nano", "policy: 'nano' (embedded), a directory, or a Hugging Face id")
    load_in_4bit: bool = setting(False, "base weights in 4 bits (NF4); needs bitsandbytes and a GPU")
    lora_r: int = setting(16, "rank of the LoRA adapter")
    lora_alpha: int = setting(32, "scale of the LoRA adapter")
    lora_rslora: bool = setting(False, "scale by the square root of the rank, for ranks of 64 and more")
    lora_targets: str = setting(
        "auto",
        "adapted modules, comma-separated: names, or auto (all-linear; attention for mixtures of experts), attention, "
        "all-linear, experts",
    )
    lora_sync: str = setting("auto", "how vLLM gets the adapter: adapter (alone), merge (changed weights), or auto")
    lora_folder: str | None = setting(
        None, "where adapters for a vLLM server go; it must see the same path. Default: <output_dir>/served"
    )
    merge: bool = setting(False, "write the whole model with the adapter folded in to <output_dir>/merged at the end")

    designer_thinking: str = setting("default", "whether the policy thinks before it designs: on, off, or default")
    hint_thinking: str = setting("default", "whether it thinks before it writes a hint")
    agent_thinking: str = setting("default", "whether it thinks before it acts")

    @property
    def thinking(self) -> dict[str, str]:
        """For each role in which the policy speaks, whether it is told to think."""
        return {"designer": self.designer_thinking, "hint": self.hint_thinking, "agent": self.agent_thinking}

    def check_policy(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        at_least(self, 1, ["lora_r", "lora_alpha"])
        kind, _, rest = self.model.partition(":")
        if kind in ("hf", "vllm", "openai"):
            raise ConfigError(
                f"model: the policy is a directory, OWNER/NAME on the Hub, nano or smollm2, got {self.model!r}"
                + ("; an endpoint cannot be trained" if kind == "openai" else f"; did you mean {rest}?")
            )
        names = ("designer_thinking", "hint_thinking", "agent_thinking")
        for name in names:  # YAML reads on and off as booleans
            if isinstance(value := getattr(self, name), bool):
                setattr(self, name, "on" if value else "off")
        one_of(self, dict.fromkeys(names, THINKING) | {"lora_sync": SYNCS})
        if not self.lora_targets.strip(" ,"):
            raise ConfigError("lora_targets must name modules, or be auto, attention, all-linear or experts")
        if self.load_in_4bit and self.lora_sync == "merge":
            raise ConfigError("lora_sync: merge cannot be exact with load_in_4bit; use adapter or auto")

"""The card of an adapter: what it is, where it comes from, how it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spade_train.config import SpadeConfig

_FIGURES = (
    ("design/valid", "valid designs"),
    ("environment/plain_return", "return on new environments"),
    ("environment/hinted_return", "return with a hint"),
    ("episode/return", "return on all plain episodes"),
    ("heldout/success", "held-out programs won"),
)


def adapter_card(config: SpadeConfig, steps: int, last: Mapping[str, Any] | None = None) -> str:
    """Return the text of an adapter's ``README.md``.

    Args:
        config: the run.
        steps: cycles that it made.
        last: its latest metrics, for a few figures.
    """
    base = "the embedded nano model, `spade_envs.models.transformers.NANO_FOLDER`"
    base = base if config.model == "nano" else f"`{config.model}`"
    head = "" if config.model == "nano" or config.model.startswith((".", "/")) else f"base_model: {config.model}\n"
    figures = [f"| {words} | {float(last[name]):.3f} |" for name, words in _FIGURES if last and name in last]
    table = "\n| in the last cycle | |\n|---|---|\n" + "\n".join(figures) + "\n" if figures else ""
    return (
        f"---\n{head}library_name: peft\ntags:\n- spade-envs\n- self-play\n- grpo\n---\n\n"
        f"# LoRA adapter made by SPADE\n\nBase model: {base}. One policy that designs environments and plays them, "
        f"after {steps} cycles (mode `{config.mode}`, prompt set `{config.prompts}`, seed {config.seed}).\n\n"
        "```python\nfrom peft import PeftModel\n\nmodel = PeftModel.from_pretrained(base_model, folder_of_this_file)\n"
        f"```\n\nOn a command line it is the model `hf:<this folder>`, with `--prompts {config.prompts}`. The figures "
        "of the run are in `metrics.jsonl`, its environments in the run's memory.\n" + table
    )

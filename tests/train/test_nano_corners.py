"""The embedded model through the corners of the recipe: hints that are trained, another model that writes programs."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from spade_envs.designer.prompt_files import find_prompt_set
from spade_envs.memory import Memory
from spade_train.callbacks import read_parts
from spade_train.config import load_recipe
from spade_train.recipe import RunResult, run

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "documents": 1,
    "designs": 4,
    "plays": 2,
    "per_device_train_batch_size": 16,
    "minimum_isolation": "static",
    "max_steps": 2,
    "save_steps": 1,
}


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """The embedded model's prompt set, but for its hints: they are asked for, in words that fit into its context."""
    folder = tmp_path / "prompts"
    shutil.copytree(find_prompt_set("nano"), folder)
    settings = folder / "set.toml"
    text = settings.read_text().replace("own_hint = true", "own_hint = false")
    settings.write_text(text.replace("[sampling]", "[sampling]\nhint = { max_tokens = 12, temperature = 0.3 }"))
    (folder / "hint.system.jinja").write_text("Play. Reply with the answer only.")
    (folder / "hint.user.jinja").write_text("Take 4 words, reverse them: hen fox cow ant")
    return folder


def _train(output: Path, prompts: Path, *, resume: bool = False, **changes: Any) -> RunResult:
    recipe = ROOT / "examples" / "recipes" / "nano_cpu.yaml"
    settings = SMALL | {"prompts": str(prompts)} | changes
    return run(load_recipe(recipe, output_dir=str(output), **settings), resume=resume)


def test_hints_of_the_policy_are_trained_while_another_model_writes_the_programs(tmp_path: Path, prompts: Path) -> None:
    changes = {"designer_model": "nano", "train_designer": False, "train_hints": True, "hints": 2}
    result = _train(tmp_path / "run", prompts, **changes)
    result = _train(tmp_path / "run", prompts, resume=True, **(changes | {"max_steps": 3}))
    assert [line["step"] for line in result.metrics] == [1, 2, 3]
    rows = read_parts(result.output_dir).to_pylist()
    designs = [row for row in rows if row["type"] == "design"]
    assert len(designs) == 3 * SMALL["designs"]
    assert all(row["advantage"] is None and row["reward"] is not None for row in designs)
    groups: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["type"] == "hint":
            groups[row["step"], row["group"]].append(row)
    for group in groups.values():  # two hints of one environment are compared with each other
        assert len(group) == 2
        assert sum(row["advantage"] for row in group) == pytest.approx(0.0, abs=1e-6)
    hints = [row for group in groups.values() for row in group]
    assert any(row["advantage"] for row in hints)
    refused = [row for row in hints if row["reason"]]
    assert 0 < len(refused) < len(hints)
    assert {row["reward"] for row in refused} == {-0.25}  # the recipe's invalid_reward
    with Memory.open(result.output_dir / "memory", read_only=True) as memory:
        assert {one.generator for one in memory.records()} == {"nano"}
        assert any(one.hint and one.statistics.hinted_plays for one in memory.records())
    weights = load_file(result.adapter / "adapter_model.safetensors")
    assert any(weight.abs().max() > 0 for name, weight in weights.items() if "lora_B" in name)

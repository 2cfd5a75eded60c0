"""Derived sizes, refused contradictions, recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spade_train.config import ConfigError, SpadeConfig, load_recipe

BASE: dict[str, Any] = {"max_steps": 2, "use_cpu": True, "bf16": False, "report_to": "none"}


def _config(tmp_path: Path, **changes: Any) -> SpadeConfig:
    return SpadeConfig(output_dir=str(tmp_path / "run"), **(BASE | changes))


def test_slots_follow_from_the_sizes(tmp_path: Path) -> None:
    config = _config(tmp_path, documents=2, designs=3, plays=4, replay_share=0.25, per_device_train_batch_size=10)
    # 6 programs, 2 replayed beside them, 8 x 4 plain plays: 38 rows, rounded up to 4 micro-batches of 10
    assert (config.written, config.reserved, config.places, config.rows_needed) == (6, 2, 8, 38)
    assert config.num_generations == config.generation_batch_size == 40
    assert config.gradient_accumulation_steps == config.steps_per_generation == 4
    assert config.memory == str(tmp_path / "run" / "memory")
    assert config.run == "run"
    assert config.scale_rewards == "none"
    assert config.hinted


def test_fixed_pool_has_no_designer_rows(tmp_path: Path) -> None:
    config = _config(tmp_path, mode="fixed_pool", pool="p", environments=5, plays=4, per_device_train_batch_size=64)
    assert (config.written, config.places, config.num_generations) == (0, 5, 20)
    assert not config.hinted
    assert _config(tmp_path, mode="fixed_pool", pool="p", environments=5, plays=4, pool_hints=True).hinted


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_generations": 8}, "derived"),
        ({"gradient_accumulation_steps": 3}, "derived"),
        ({"scale_rewards": "group"}, "scale_rewards must be 'none'"),
        ({"loss_type": "grpo"}, "dilute"),
        ({"mask_truncated_completions": True}, "whole episodes"),
        ({"num_iterations": 2}, "resumed"),
        ({"logging_steps": 5}, "metrics.jsonl"),
        ({"save_total_limit": 1}, "at least 2"),
        ({"save_only_model": True}, "resumed exactly"),
        ({"resume_from_checkpoint": "runs/x/checkpoint-1"}, "--resume"),
        ({"auto_find_batch_size": True}, "rows of a cycle"),
        ({"max_completion_length": 4096}, "turn_tokens"),
        ({"reward_weights": [2.0]}, "designer_weight"),
        ({"designer_reward": "fame"}, "blend, regret"),
        ({"mode": "fixed_pool"}, "pool"),
        ({"plays": 1}, "at least 2"),
        ({"documents": 0}, "documents must be at least 1"),
        ({"replay_share": 1.0}, "replay_share"),
        ({"max_steps": -1}, "max_steps"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _config(tmp_path, **changes)


def _recipe(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    return path


def test_recipe(tmp_path: Path) -> None:
    text = f"output_dir: {tmp_path}/run\nmax_steps: 3\nuse_cpu: true\nbf16: false\nlearning_rate: 1e-4\ndocuments: 2\n"
    config = load_recipe(_recipe(tmp_path, text), designs=3)
    assert (config.learning_rate, config.documents, config.designs, config.max_steps) == (1e-4, 2, 3, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("documnts: 2\n", "did you mean documents"),
        ("documents: many\n", "documents"),
        ("- a\n", "mapping"),
        ("a: [\n", "recipe"),
        ("max_steps: 2\nloss_type: grpo\n", "loss_type"),
    ],
)
def test_bad_recipes_say_why(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_recipe(_recipe(tmp_path, text))


def test_missing_recipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_recipe(tmp_path / "none.yaml")

"""The embedded model through the whole of it: recipe, example script, resume, fixed pool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from spade_envs.memory import Memory
from spade_envs.pools import PoolError
from spade_train.callbacks import read_metrics
from spade_train.config import ConfigError, SpadeConfig, load_recipe
from spade_train.recipe import RunResult, load_policy, run

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "documents": 1,
    "designs": 3,
    "plays": 2,
    "per_device_train_batch_size": 16,
    "minimum_isolation": "static",
}


def _recipe(output: Path, **changes: Any) -> SpadeConfig:
    return load_recipe(ROOT / "examples" / "recipes" / "nano_cpu.yaml", output_dir=str(output), **(SMALL | changes))


def _few(factory: pytest.TempPathFactory) -> Path:
    """Write a held-out set of four programs."""
    from importlib.resources import files

    lines = (files("spade_train.evaluation") / "heldout.jsonl").read_text().splitlines()
    path = factory.mktemp("heldout") / "few.jsonl"
    path.write_text("\n".join(lines[::30]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    config = _recipe(
        tmp_path_factory.mktemp("nano") / "run",
        max_steps=3,
        save_steps=1,
        heldout_every=2,
        heldout_seeds=1,
        heldout=str(_few(tmp_path_factory)),
    )
    return run(config)


def test_recipe_trains_the_embedded_model(trained: RunResult) -> None:
    assert trained.steps == len(trained.metrics) == 3
    for line in trained.metrics:
        assert 0.0 <= line["design/valid"] <= 1.0
        assert line["tokens/designer"] > 0
        assert line["seconds/update"] > 0
    assert ["heldout/success" in line for line in trained.metrics] == [True, False, True]
    assert any(line["grad_norm"] > 0 for line in trained.metrics)
    with Memory.open(trained.output_dir / "memory", read_only=True) as memory:
        played = [one for one in memory.records() if one.statistics.plain_plays]
        assert len(played) == len(memory)
        assert all(one.generator == "nano" for one in played)
        assert any(one.statistics.hinted_plays for one in played)  # a program's own hint may fail
    weights = load_file(trained.adapter / "adapter_model.safetensors")
    assert any(weight.abs().max() > 0 for name, weight in weights.items() if "lora_B" in name)


def test_the_adapter_is_a_model_for_the_command_line(trained: RunResult) -> None:
    from spade_envs.models import Sampling, load_model

    model = load_model(f"hf:{trained.adapter}")
    (reply,) = model.complete([[{"role": "user", "content": "Take 2 words, reverse them: hen fox"}]], Sampling())
    model.close()
    assert reply.completion_tokens > 0
    assert "[More Information Needed]" not in (trained.adapter / "README.md").read_text(encoding="utf-8")
    assert not (trained.output_dir / "README.md").exists()


def test_adapter_loads_with_peft(trained: RunResult) -> None:
    from peft import PeftModel

    model, _ = load_policy(_recipe(trained.output_dir))
    merged = PeftModel.from_pretrained(model, str(trained.adapter)).merge_and_unload()
    assert merged.config.model_type == "qwen3"


def test_fixed_pool_plays_without_a_designer(trained: RunResult, tmp_path: Path) -> None:
    pool = str(trained.output_dir / "memory")
    result = run(_recipe(tmp_path / "pool", max_steps=1, mode="fixed_pool", pool=pool, environments=2))
    (line,) = result.metrics
    assert "design/valid" not in line
    assert line["replay/count"] == 2
    Memory.open(tmp_path / "empty").close()
    with pytest.raises(PoolError, match="holds no environment"):
        run(_recipe(tmp_path / "none", max_steps=1, mode="fixed_pool", pool=str(tmp_path / "empty")))


def test_example_script_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "own_grpo_script.py"), str(tmp_path / "own"), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(read_metrics(tmp_path / "own")) == 1
    assert (tmp_path / "own" / "adapter" / "adapter_model.safetensors").is_file()


def test_unknown_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        run(_recipe(tmp_path / "run", model=str(tmp_path / "nowhere")))

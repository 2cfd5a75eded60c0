"""Recipes that build on each other, the recipes of the repository, and the table that documents every setting."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from spade_train.config import ConfigError, SpadeConfig, load_recipe
from spade_train.recipe_files import read_recipe, recipe_chain
from spade_train.settings.budgets import BudgetSettings
from spade_train.settings.cycle import CycleSettings
from spade_train.settings.life import LifeSettings
from spade_train.settings.pay import PaySettings
from spade_train.settings.policy import PolicySettings
from spade_train.settings.retirement import RetirementSettings

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "examples" / "recipes").glob("*.yaml"))
SETTINGS = (PolicySettings, CycleSettings, RetirementSettings, BudgetSettings, PaySettings, LifeSettings)


def _write(folder: Path, **recipes: str) -> None:
    for name, text in recipes.items():
        (folder / f"{name}.yaml").write_text(text)


def test_a_recipe_overrides_what_it_builds_on(tmp_path: Path) -> None:
    _write(
        tmp_path,
        grand="max_steps: 5\ndesigns: 2\nplays: 4\noutput_dir: elsewhere\n",
        middle="base: grand\ndesigns: 3\n",
        child="base: middle.yaml\nplays: 8\n",
    )
    assert [path.stem for path in recipe_chain(tmp_path / "child.yaml")] == ["child", "middle", "grand"]
    values = read_recipe(tmp_path / "child.yaml")
    assert values == {"max_steps": 5, "designs": 3, "plays": 8, "output_dir": "runs/child"}
    assert read_recipe(tmp_path / "grand.yaml")["output_dir"] == "elsewhere"
    config = load_recipe(tmp_path / "child.yaml", use_cpu=True, bf16=False, max_steps=7)
    assert (config.max_steps, config.designs, config.plays) == (7, 3, 8)


@pytest.mark.parametrize(
    ("recipes", "words"),
    [
        ({"a": "base: b\n", "b": "base: c\n", "c": "base: a\n"}, "circle: a.yaml → b.yaml → c.yaml → a.yaml"),
        ({"a": "base: a\n"}, "circle"),
        ({"a": "base: gone\n"}, "gone.yaml does not exist"),
        ({"a": "base: [b]\n"}, "base must name another recipe"),
        ({"a": "base: b\n", "b": "- 1\n"}, "must be a mapping"),
        ({"a": "base: b\n", "b": "plais: 3\n"}, "did you mean plays"),
    ],
)
def test_bases_that_do_not_work(tmp_path: Path, recipes: dict[str, str], words: str) -> None:
    _write(tmp_path, **recipes)
    with pytest.raises(ConfigError, match=words):
        load_recipe(tmp_path / "a.yaml", max_steps=1, use_cpu=True, bf16=False)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_loads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = load_recipe(path, use_cpu=True)
    assert config.output_dir == f"runs/{path.stem}"
    assert path.read_text(encoding="utf-8").startswith("# "), "a recipe says what it is for"


def test_the_paper_s_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """See docs/training.md, Recipes: the table of what the paper used."""
    monkeypatch.chdir(ROOT)
    for name, every, beta in (
        ("games_4b", 4, 0.0),
        ("games_8b", 4, 0.005),
        ("games_30b_a3b", 4, 0.0),
        ("tool_use_4b", 8, 0.005),
        ("tool_use_30b_a3b", 8, 0.005),
    ):
        config = load_recipe(ROOT / "examples" / "recipes" / f"{name}.yaml", use_cpu=True)
        ranks = 8 if "30b" in name else 1
        assert config.written * ranks == 24, name
        assert (config.plays, config.regenerate_every, config.beta) == (16, every, beta), name
        assert (config.epsilon, config.epsilon_high, config.temperature) == (0.2, 0.28, 0.6), name
        assert (config.adam_beta1, config.adam_beta2, config.weight_decay) == (0.9, 0.98, 0.1), name
        assert (config.max_steps, config.memory_capacity, config.context_tokens) == (400, 200, 32_768), name
        assert (config.design_tokens, config.turn_tokens, config.max_turns) == (16_384, 8_192, 25), name
        assert (config.learning_rate, config.lr_scheduler_type.value) == (2e-5, "constant"), name
        assert (config.active_skills, config.designer_reward) == (3, "blend"), name
        assert config.replay_share == 0.0, name


def test_every_setting_is_documented() -> None:
    table = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    documented = {name for row in table.splitlines() if row.startswith("| `") for name in re.findall(r"`(\w+)`", row)}
    names = {entry.name for topic in SETTINGS for entry in dataclasses.fields(topic) if entry.init}
    assert names == set(SpadeConfig.__dataclass_fields__) & names
    assert not sorted(names - documented)

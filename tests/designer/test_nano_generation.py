"""Generation by the embedded model: the whole way from documents to environments that Gymnasium makes."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest
from scripted_designer import FAST

import spade_envs
from spade_envs.corpus import Corpus
from spade_envs.designer import Designer, PromptSet, generate
from spade_envs.memory import Memory
from spade_envs.models import ChatModel, load_model
from spade_envs.sandbox import Sandbox

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def nano() -> ChatModel:
    return load_model("nano", device="cpu")


def _generate(nano: ChatModel, folder: Path, sandbox: Sandbox) -> list[str]:
    with Memory.open(folder) as memory:
        designer = Designer(PromptSet.load("nano"), memory, sandbox, validation=FAST, generator=nano.name)
        summary = generate(nano, Corpus.open("builtin:nano"), designer, memory, count=6, seed=2, round_size=8)
        assert summary.attempts <= 24
        return summary.ids


def test_the_embedded_model_generates_the_same_environments_again(
    nano: ChatModel, tmp_path: Path, sandbox: Sandbox
) -> None:
    ids = _generate(nano, tmp_path / "a", sandbox)
    assert len(set(ids)) == 6
    assert _generate(nano, tmp_path / "b", sandbox) == ids
    with Memory.open(tmp_path / "a") as memory:
        record = memory.get(ids[0])
        assert record.proven
        assert record.hint == ""  # the program has its own, made anew for every seed
        spade_envs.register(memory)
    env = gymnasium.make(record.env_id)
    observation, _ = env.reset(seed=3)
    hinted, info = env.reset(seed=3, options={"hint": True})
    assert hinted.startswith(observation)
    assert info["hint"]
    env.close()

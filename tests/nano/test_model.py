"""The embedded weights: small, loadable by transformers, and good enough at both roles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from spade_envs.designer.prompts import PromptSet  # noqa: E402
from spade_envs.models.base import ChatModel  # noqa: E402
from spade_envs.models.load import load_model  # noqa: E402
from spade_envs.play import PlayConfig  # noqa: E402
from spade_envs.sandbox import Sandbox  # noqa: E402
from spade_train.evaluation.heldout import BUILTIN, evaluate, load_programs  # noqa: E402
from spade_train.nano.measure import measure_designs  # noqa: E402
from spade_train.nano.tokenizer import CONTEXT  # noqa: E402
from spade_train.nano.warmstart import MODEL_FOLDER  # noqa: E402


@pytest.fixture(scope="module")
def nano() -> Iterator[ChatModel]:
    model = load_model("nano", device="cpu", batch_size=128)
    yield model
    model.close()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def test_files_are_small_and_load_without_code() -> None:
    assert (MODEL_FOLDER / "model.safetensors").stat().st_size <= 2_000_000
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL_FOLDER)
    assert type(model) is transformers.Qwen3ForCausalLM
    assert model.dtype == torch.float32
    assert model.config.max_position_embeddings == CONTEXT


def test_logits_are_finite_over_the_whole_context() -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL_FOLDER)
    ids = torch.arange(CONTEXT)[None] % model.config.vocab_size
    with torch.inference_mode():
        assert torch.isfinite(model(ids).logits).all()


def test_most_designs_for_fresh_documents_are_admitted(nano: ChatModel, sandbox: Sandbox) -> None:
    designs = measure_designs(nano, sandbox, count=48, temperature=1.0)
    assert designs["admitted"] >= 0.8, designs["causes"]
    assert designs["grounded"] >= 0.5
    assert designs["tokens"] <= 45
    assert designs["distinct"] >= 0.9 * 48 * designs["admitted"]


def test_the_player_leaves_room_to_learn_and_uses_hints(nano: ChatModel, sandbox: Sandbox) -> None:
    prompts = PromptSet.load("nano")
    config = PlayConfig(system_prompt=prompts.agent_system, hint_template=prompts.hint_template, **prompts.play)
    programs = load_programs(BUILTIN)
    plain = evaluate(nano, programs, sandbox, config, seeds=2, temperature=1.0)
    hinted = evaluate(nano, programs, sandbox, config, seeds=2, temperature=1.0, hinted=True)
    assert plain.by_tier[1] > plain.by_tier[4]
    assert 0.1 < plain.success < 0.6
    assert hinted.success > plain.success + 0.1

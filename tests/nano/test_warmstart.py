"""The warm start repeats, and its parts fit together."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from spade_envs.designer.prompts import PromptSet  # noqa: E402
from spade_train.nano.grammar import HELD_OUT_WORDS  # noqa: E402
from spade_train.nano.samples import SampleMaker  # noqa: E402
from spade_train.nano.tokenizer import CONTEXT, build_tokenizer  # noqa: E402
from spade_train.nano.warmstart import WarmStart, main, save, train  # noqa: E402
from spade_train.tokens import ChatTokens  # noqa: E402

SMALL = WarmStart(seed=3, steps=3, designs=2, episodes=4)


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = (train(SMALL, log_every=0)[0].state_dict() for _ in range(2))
    other = train(WarmStart(seed=4, steps=3, designs=2, episodes=4), log_every=0)[0].state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_the_loss_falls(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, few = train(WarmStart(steps=1, designs=4, episodes=16), log_every=0)
    _, _, more = train(WarmStart(steps=60, designs=4, episodes=16), log_every=30)
    assert more["designer"] < few["designer"] - 1
    assert more["agent"] < few["agent"] - 1
    assert capsys.readouterr().out.count("CPU min") == 2


def test_what_is_saved_computes_what_was_trained(tmp_path: Path) -> None:
    model, tokenizer, _ = train(SMALL, log_every=0)
    save(model, tokenizer, tmp_path)
    model.load_state_dict({name: weight.half().float() for name, weight in model.state_dict().items()})
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        assert torch.equal(loaded(ids).logits, model(ids).logits)
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip


def test_the_command_writes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--steps", "2", "--out", str(tmp_path)])
    assert "parameters" in capsys.readouterr().out
    assert (tmp_path / "model.safetensors").is_file()


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        WarmStart(steps=0)


def test_designer_samples_never_hold_held_out_words() -> None:
    prompts = PromptSet.load("nano")
    tokenizer = build_tokenizer(prompts)
    maker = SampleMaker(prompts, ChatTokens(tokenizer))
    rng = random.Random(0)
    forbidden = {form for word in HELD_OUT_WORDS for form in (f" {word}", word.capitalize())}
    for _ in range(100):
        sample = maker.designer(rng)
        assert not forbidden & set(tokenizer.convert_ids_to_tokens(sample.ids))
        assert len(sample.ids) == len(sample.learn) <= CONTEXT // 2
        assert sample.ids[-1] == tokenizer.eos_token_id
        assert sample.learn[-1]


def test_agent_samples_learn_replies_only() -> None:
    prompts = PromptSet.load("nano")
    tokenizer = build_tokenizer(prompts)
    maker = SampleMaker(prompts, ChatTokens(tokenizer))
    rng = random.Random(1)
    markers = set(tokenizer.convert_tokens_to_ids(["<|system|>", "<|user|>", "<|assistant|>"]))
    for _ in range(100):
        sample = maker.agent(rng)
        learned = [token for token, learn in zip(sample.ids, sample.learn) if learn]
        assert learned.count(tokenizer.eos_token_id) == sample.ids.count(
            tokenizer.convert_tokens_to_ids("<|assistant|>")
        )
        assert not markers & set(learned)
        assert len(sample.ids) <= CONTEXT

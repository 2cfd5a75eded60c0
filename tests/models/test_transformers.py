"""The transformers backend on a tiny model with random weights that is made here."""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spade_envs.models import ChatModel, Completion, ModelError, Sampling, load_model
from spade_envs.models.base import Conversation

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from spade_envs.models.inverse_transform import InverseTransform  # noqa: E402
from spade_envs.models.transformers import NANO_FOLDER, TransformersModel  # noqa: E402

torch.set_num_threads(1)  # several test processes share the cores
WORDS = [f"w{number}" for number in range(20)]
TEMPLATE = "{% for m in messages %}{{ '<' + m.role + '> ' + m.content + ' <end> ' }}{% endfor %}<assistant>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a random Qwen3 of 30 words and a chat template."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    path = tmp_path_factory.mktemp("tiny")
    vocabulary = ["<pad>", "<end>", "<|im_end|>", "<unk>", "<system>", "<user>", "<assistant>", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", unk_token="<unk>", chat_template=TEMPLATE
    )
    fast.save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=64, tie_word_embeddings=True,
        eos_token_id=1, pad_token_id=0, initializer_range=0.4,
    )  # fmt: skip
    model = transformers.Qwen3ForCausalLM(config)
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=1, do_sample=True, temperature=0.1, top_k=1, repetition_penalty=5.0
    )
    model.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> TransformersModel:
    return TransformersModel.load(folder, device="cpu", batch_size=8)


def _ask(*words: str) -> Conversation:
    return [{"role": "system", "content": "w1"}, {"role": "user", "content": " ".join(words)}]


CONVERSATIONS = [_ask(*WORDS[: 1 + number % 7]) for number in range(20)]


def test_completions_have_text_counts_and_reasons(model: TransformersModel) -> None:
    completions = model.complete(CONVERSATIONS, Sampling(max_tokens=12, temperature=1.0, seed=3))
    assert isinstance(model, ChatModel)
    for conversation, completion in zip(CONVERSATIONS, completions):
        assert completion.prompt_tokens == len(conversation[1]["content"].split()) + 6
        words = len(completion.text.split())
        if completion.finish_reason == "stop":
            assert 1 <= completion.completion_tokens <= 12
            assert words <= completion.completion_tokens - 1
        else:
            assert completion.completion_tokens == 12
        assert "<end>" not in completion.text
    assert {completion.finish_reason for completion in completions} == {"stop", "length"}


def test_a_seed_fixes_the_replies_whatever_was_asked_before(model: TransformersModel) -> None:
    sampling = Sampling(max_tokens=10, temperature=1.0, top_p=0.9, seed=11)
    first = model.complete(CONVERSATIONS, sampling)
    torch.rand(17)
    model.complete(CONVERSATIONS[:3], Sampling(max_tokens=4, temperature=1.0, seed=5))
    assert model.complete(CONVERSATIONS, sampling) == first
    assert model.complete(CONVERSATIONS, Sampling(max_tokens=10, temperature=1.0, top_p=0.9, seed=12)) != first


def test_replies_do_not_depend_on_the_batch_size(model: TransformersModel, folder: Path) -> None:
    sampling = Sampling(max_tokens=10, temperature=1.0, seed=2)
    singles = TransformersModel.load(folder, device="cpu", batch_size=1)
    assert singles.complete(CONVERSATIONS, sampling) == model.complete(CONVERSATIONS, sampling)
    assert singles.complete(CONVERSATIONS[:4], sampling) == model.complete(CONVERSATIONS, sampling)[:4]


def test_equal_conversations_get_different_replies(model: TransformersModel) -> None:
    completions = model.complete([_ask("w3")] * 16, Sampling(max_tokens=8, temperature=1.5, seed=0))
    assert len({completion.text for completion in completions}) > 8


def test_global_random_numbers_are_left_alone(model: TransformersModel) -> None:
    torch.manual_seed(1)
    before = torch.rand(3)
    torch.manual_seed(1)
    model.complete(CONVERSATIONS[:2], Sampling(max_tokens=4, temperature=1.0))
    assert torch.equal(torch.rand(3), before)


def test_temperature_zero_is_the_most_likely_token_of_the_bare_model(folder: Path, model: TransformersModel) -> None:
    bare = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for conversation in CONVERSATIONS[:5]:
        ids = list(tokenizer.apply_chat_template(list(conversation), return_dict=True)["input_ids"])
        prompt = len(ids)
        while len(ids) < prompt + 6 and (len(ids) == prompt or ids[-1] not in (1, 2)):
            with torch.inference_mode():
                ids.append(int(bare(torch.tensor([ids])).logits[0, -1].argmax()))
        (completion,) = model.complete([conversation], Sampling(max_tokens=6, temperature=0.0))
        new = ids[prompt:]
        assert completion.completion_tokens == len(new)
        assert completion.text == tokenizer.decode([token for token in new if token not in (1, 2)])
    own = model.module.generation_config
    assert own.repetition_penalty == 5.0  # the model's own settings are given back


@pytest.mark.parametrize("top_p", [1.0, 0.75])
def test_tokens_are_drawn_with_their_probabilities(top_p: float) -> None:
    probabilities = torch.tensor([0.5, 0.125, 0.25, 0.0, 0.125])
    rows, temperature = 4000, 2.0
    uniforms = torch.linspace(0, 1, rows + 1)[:-1].unsqueeze(1)
    process = InverseTransform(uniforms, 3, Sampling(temperature=temperature, top_p=top_p))
    scores = (probabilities.log() * temperature).expand(rows, -1)
    drawn = Counter(process(torch.zeros(rows, 3, dtype=torch.long), scores).argmax(dim=-1).tolist())
    kept = probabilities if top_p == 1 else torch.tensor([0.5, 0, 0.25, 0, 0])
    for token, share in enumerate((kept / kept.sum()).tolist()):
        assert math.isclose(drawn[token] / rows, share, abs_tol=2e-3)


def test_the_largest_uniform_number_still_draws_a_possible_token() -> None:
    scores = torch.tensor([[0.0, 0.0, float("-inf")]])
    process = InverseTransform(torch.tensor([[1.0]]), 1, Sampling(temperature=1.0))
    assert int(process(torch.zeros(1, 1, dtype=torch.long), scores).argmax()) == 1


def test_a_prompt_that_leaves_no_room_fails_alone(model: TransformersModel) -> None:
    long, short = _ask(*["w1"] * 70), _ask("w1")
    failed, fine = model.complete([long, short], Sampling(max_tokens=100, temperature=1.0))
    assert failed.finish_reason == "error"
    assert failed.error.startswith("the prompt has 76 tokens, the model's context 64: ")
    assert "--prompts nano" in failed.error
    assert isinstance(fine, Completion)
    assert fine.completion_tokens <= 64 - 7


def test_no_conversations(model: TransformersModel) -> None:
    assert model.complete([], Sampling()) == []


def test_a_template_without_a_system_role(folder: Path) -> None:
    model = TransformersModel.load(folder, device="cpu")
    model._tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE
    )
    (completion,) = model.complete([_ask("w2")], Sampling(max_tokens=3, temperature=0.0))
    assert completion.prompt_tokens == 5  # <user> w1 w2 <end> <assistant>


def test_what_cannot_be_loaded_is_a_model_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with pytest.raises(ModelError, match=r"neither config\.json nor"):
        load_model(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="does not hold a loadable model"):
        load_model(f"hf:{tmp_path}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="hf download nobody/nothing"):
        load_model("hf:nobody/nothing")
    with pytest.raises(ModelError, match="dtype 'float31' is not known"):
        load_model(f"hf:{folder}", dtype="float31")
    with pytest.raises(ModelError, match="device 'abacus'"):
        load_model(f"hf:{folder}", device="abacus")


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"pip install 'spade-envs\[train\]'"):
        load_model("nano")


def test_a_model_without_a_chat_template_is_refused(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = None
    bare = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with pytest.raises(ModelError, match="no chat template"):
        TransformersModel(bare, tokenizer, name="bare")


@pytest.mark.parametrize("task", [None, "CAUSAL_LM"])
def test_a_lora_adapter_directory_loads(folder: Path, tmp_path: Path, task: str | None) -> None:
    peft = pytest.importorskip("peft")
    bare = transformers.AutoModelForCausalLM.from_pretrained(folder)
    lora = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False, task_type=task)
    adapted = peft.get_peft_model(bare, lora)
    adapted.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    sampling = Sampling(max_tokens=8, temperature=0.0)
    loaded = load_model(f"hf:{tmp_path}", device="cpu")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    live = TransformersModel(adapted.eval(), tokenizer, name="live")
    assert loaded.complete(CONVERSATIONS[:4], sampling) == live.complete(CONVERSATIONS[:4], sampling)
    loaded.close()
    with pytest.raises(ModelError, match="was closed"):
        loaded.complete(CONVERSATIONS[:1], sampling)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_draws_with_the_same_numbers(folder: Path, model: TransformersModel) -> None:
    sampling = Sampling(max_tokens=10, temperature=1.0, top_p=0.9, seed=2)
    on_gpu = TransformersModel.load(folder, device="cuda", dtype="float32", batch_size=8)
    assert on_gpu.complete(CONVERSATIONS, sampling) == model.complete(CONVERSATIONS, sampling)


@pytest.mark.skipif(not (NANO_FOLDER / "config.json").is_file(), reason="the embedded weights are not there")
def test_the_embedded_model_answers() -> None:
    nano = load_model("nano", device="cpu")
    assert nano.name == "nano"
    (completion,) = nano.complete([[{"role": "user", "content": "Skill: numbers"}]], Sampling(max_tokens=8, seed=1))
    assert completion.completion_tokens >= 1

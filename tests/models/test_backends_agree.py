"""What every backend promises, asked of each that can run here: nano, an endpoint, vLLM's face.

vLLM itself needs a GPU. Its backend runs here against an engine that does what vLLM's documented interface says, with
the embedded model inside; that vLLM keeps to it is not verified by this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from endpoint_server import Handler, Server, chat, status

from spade_envs.models import load_model
from spade_envs.models.base import ChatModel, Conversation, ModelError, Sampling
from spade_envs.models.transformers import NANO_FOLDER, TransformersModel

CONTEXT = 512
BACKENDS = ("nano", "endpoint", "vllm")


class _Engine:
    """The part of ``vllm.LLM`` that the backend uses, on the embedded model."""

    def __init__(self, **options: Any) -> None:
        assert options["generation_config"] == "vllm"  # else the model's own sampling defaults come in
        self._inner = TransformersModel.load(options["model"], name="inner")
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=CONTEXT))

    def get_tokenizer(self) -> Any:
        return self._inner.tokenizer

    def generate(self, prompts: list[Any], *, sampling_params: list[Any], use_tqdm: bool, **_: Any) -> list[Any]:
        outputs = []
        for prompt, parameters in zip(prompts, sampling_params, strict=True):
            one = Sampling(parameters.max_tokens, parameters.temperature, parameters.top_p, parameters.seed)
            (reply,) = self._inner._generate([0], [prompt["prompt_token_ids"]], one)
            ids = range(reply.completion_tokens)
            completion = SimpleNamespace(text=reply.text, token_ids=ids, finish_reason=reply.finish_reason)
            outputs.append(SimpleNamespace(outputs=[completion]))
        return outputs


def _answer(handler: Handler, body: dict[str, Any]) -> None:
    """The embedded model behind HTTP."""
    model: TransformersModel = handler.server.model  # type: ignore[attr-defined]
    asked = Sampling(body["max_tokens"], body["temperature"], body["top_p"], body["seed"])
    if len(body["messages"][-1]["content"]) > 4 * CONTEXT:
        status(400, "maximum context length exceeded")(handler, body)
        return
    (reply,) = model.complete([body["messages"]], asked)
    handler.reply(200, chat(reply.text, reply.finish_reason, (reply.prompt_tokens, reply.completion_tokens)))


@pytest.fixture(params=BACKENDS)
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatModel]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = None
    if request.param == "nano":
        made = load_model("nano")
    elif request.param == "endpoint":
        server = Server()
        server.answers = [_answer]
        server._server.model = load_model("nano")  # type: ignore[attr-defined]
        made = load_model("openai:nano", base_url=server.url)
    else:
        vllm = ModuleType("vllm")
        vllm.LLM, vllm.SamplingParams = _Engine, SimpleNamespace  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "vllm", vllm)
        made = load_model(f"vllm:{NANO_FOLDER}")
    yield made
    made.close()
    if server is not None:
        server.close()


def _asking(text: str) -> Conversation:
    return [{"role": "system", "content": "You play."}, {"role": "user", "content": text}]


def test_a_backend_is_a_chat_model(model: ChatModel) -> None:
    assert isinstance(model, ChatModel)
    assert model.name == "nano"


def test_one_completion_for_each_conversation_with_counts(model: ChatModel) -> None:
    completions = model.complete([_asking(f"reverse: ant bee {n}") for n in range(5)], Sampling(max_tokens=8, seed=1))
    assert len(completions) == 5
    for completion in completions:
        assert not completion.error
        assert completion.prompt_tokens > 5
        assert 1 <= completion.completion_tokens <= 8
        assert completion.finish_reason == ("length" if completion.completion_tokens == 8 else "stop")


def test_the_same_seed_gives_the_same_replies_and_another_seed_others(model: ChatModel) -> None:
    asked = [_asking("reverse: ant bee cow")] * 6
    sampling = Sampling(max_tokens=12, temperature=1.5, seed=3)
    first = model.complete(asked, sampling)
    assert model.complete(asked, sampling) == first
    assert len({completion.text for completion in first}) > 1  # equal conversations get replies of their own
    assert model.complete(asked, Sampling(max_tokens=12, temperature=1.5, seed=4)) != first


def test_temperature_zero_needs_no_seed(model: ChatModel) -> None:
    replies = model.complete([_asking("reverse: ant bee")] * 3, Sampling(max_tokens=8, temperature=0.0, seed=9))
    assert len({reply.text for reply in replies}) == 1


def test_a_conversation_that_does_not_fit_fails_alone(model: ChatModel) -> None:
    long, short = _asking("ant " * 4000), _asking("reverse: ant bee")
    bad, good = model.complete([long, short], Sampling(max_tokens=8))
    assert bad.error
    assert (bad.text, bad.finish_reason) == ("", "error")
    assert not good.error


def test_nothing_asked_nothing_said(model: ChatModel) -> None:
    assert model.complete([], Sampling()) == []


def test_without_vllm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ModelError, match=r"spade-envs\[vllm\]"):
        load_model("vllm:somewhere")

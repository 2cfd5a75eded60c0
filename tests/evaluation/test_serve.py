"""The endpoint of `spade serve`: what every backend promises, asked through our own client; tool calls; errors."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
import uvicorn
from test_backends_agree import (  # noqa: F401 — collected here again, for the model below
    test_a_backend_is_a_chat_model,
    test_a_conversation_that_does_not_fit_fails_alone,
    test_nothing_asked_nothing_said,
    test_one_completion_for_each_conversation_with_counts,
    test_temperature_zero_needs_no_seed,
    test_the_same_seed_gives_the_same_replies_and_another_seed_others,
)

from spade_envs.models import load_model
from spade_envs.models.base import Completion, ModelError, Sampling
from spade_envs.models.openai import OpenAIModel
from spade_train.serving.batcher import Batcher, Job
from spade_train.serving.cli import listen
from spade_train.serving.dialogue import BadRequest, as_text, read_messages, read_reply
from spade_train.serving.process import served_model
from spade_train.serving.server import make_app
from spade_train.serving.slot_batcher import SlotBatcher
from spade_train.serving.vllm_command import vllm_command

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}


class _Served:
    def __init__(self, kind: type[Batcher] | type[SlotBatcher]) -> None:
        self.model = load_model("nano")
        self.batcher = kind(self.model)  # type: ignore[arg-type]
        listening = socket.create_server(("127.0.0.1", 0))
        app = make_app(self.model, self.batcher, ["nano"], 16)  # type: ignore[arg-type]
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True)
        self.thread.start()

    def post(self, **body: Any) -> httpx.Response:
        body = {"model": "nano", "messages": [{"role": "user", "content": "reverse: ant bee"}], **body}
        return httpx.post(f"{self.url}/chat/completions", json=body, timeout=60, trust_env=False)


@pytest.fixture(scope="module", params=[Batcher, SlotBatcher], ids=["batches", "slots"])
def served(request: pytest.FixtureRequest) -> Iterator[_Served]:
    made = _Served(request.param)
    yield made
    made.server.should_exit = True
    made.thread.join(10)
    made.batcher.close()


@pytest.fixture
def model(served: _Served, monkeypatch: pytest.MonkeyPatch) -> OpenAIModel:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return OpenAIModel("nano", base_url=served.url)


def test_requests_that_wait_share_batches_and_keep_their_replies(served: _Served, model: OpenAIModel) -> None:
    asked = [[{"role": "user", "content": f"reverse: ant bee {n}"}] for n in range(24)]
    sampling = Sampling(max_tokens=12, temperature=1.0, seed=5)
    together = model.complete(asked, sampling)
    busiest = served.batcher.busiest if isinstance(served.batcher, SlotBatcher) else max(served.batcher.batches)
    assert busiest > 1
    alone = OpenAIModel("nano", base_url=served.url, concurrency=1).complete(asked, sampling)
    assert [reply.text for reply in alone] == [reply.text for reply in together]


def test_prompts_that_are_too_long_for_the_embedded_model_say_which_are_not(model: OpenAIModel) -> None:
    (reply,) = model.complete([[{"role": "user", "content": "word " * 400}]], Sampling(max_tokens=8))
    assert "the model's context 256" in reply.error
    assert "--prompts nano" in reply.error
    assert "Error" not in reply.error


def test_a_port_that_is_taken_is_told_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ValueError, match=rf"cannot listen on port {port} of 127.0.0.1: another program.*--port"
        ) as e:
            listen("127.0.0.1", port)
        assert "Errno" not in str(e.value)
    listen("127.0.0.1", 0).close()
    for host in ("192.0.2.1", "nowhere.invalid"):
        with pytest.raises(ValueError, match="--host must be an address of this machine"):
            listen(host, 0)


def test_what_is_wrong_with_a_request_is_said(served: _Served) -> None:
    assert served.post(model="gpt").status_code == 404
    for wrong in ({"messages": []}, {"messages": "hi"}, {"n": 3}, {"temperature": "warm"}, {"max_tokens": -1},
                  {"tools": [{"name": "x"}]}, {"messages": [{"role": "owner", "content": ""}]}):  # fmt: skip
        answer = served.post(**wrong)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]
    assert httpx.post(f"{served.url}/chat/completions", content=b"{", trust_env=False).status_code == 400


def test_an_unknown_model_stops_our_client(served: _Served) -> None:
    with pytest.raises(ModelError, match="knows no model"):
        OpenAIModel("other", base_url=served.url).complete([[{"role": "user", "content": "x"}]], Sampling())


def test_a_reply_that_nobody_waits_for_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Job] = []

    class Endless:
        def submit(self, job: Job) -> Future[Completion]:
            asked.append(job)
            return job.reply

        def close(self) -> None: ...

    monkeypatch.setattr("spade_train.serving.server._LOOK_SECONDS", 0.05)
    listening = socket.create_server(("127.0.0.1", 0))
    app = make_app(load_model("nano"), Endless(), ["nano"], 16)  # type: ignore[arg-type]
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/chat/completions"
    body = {"model": "nano", "messages": [{"role": "user", "content": "reverse: ant bee"}]}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(url, json=body, timeout=httpx.Timeout(5.0, read=0.5), trust_env=False)
    until = time.monotonic() + 10.0
    while not asked[0].reply.cancelled() and time.monotonic() < until:
        time.sleep(0.02)
    assert [job.reply.cancelled() for job in asked] == [True]
    server.should_exit = True
    thread.join(10)


def test_models_health_and_streams(served: _Served) -> None:
    assert httpx.get(f"{served.url}/models", trust_env=False).json()["data"][0]["id"] == "nano"
    assert httpx.get(served.url.removesuffix("/v1") + "/health", trust_env=False).status_code == 200
    lines = [line for line in served.post(stream=True, seed=1).text.split("\n") if line]
    assert lines[-1] == "data: [DONE]"
    streamed = json.loads(lines[0].removeprefix("data: "))["choices"][0]["delta"]["content"]
    assert streamed == served.post(seed=1).json()["choices"][0]["message"]["content"]


def test_calls_are_read_in_the_usual_forms() -> None:
    call = '{"name": "add", "arguments": {"a": 1}}'
    for text in (f"<tool_call>\n{call}\n</tool_call>", call, f"[{call}]", call.replace("arguments", "parameters")):
        content, calls = read_reply(text, [TOOL])
        assert content == ""
        assert json.loads(calls[0]["function"]["arguments"]) == {"a": 1}
    content, calls = read_reply(f"First.\n<tool_call>{call}</tool_call><tool_call>{call}</tool_call>", [TOOL])
    assert (content, len(calls)) == ("First.", 2)
    assert calls[0]["id"] != calls[1]["id"]


@pytest.mark.parametrize(
    "text",
    ["plain", '<tool_call>{"name": "add"', '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
     '{"name": "add", "arguments": 3}', "{}", "[1]", "<tool_call></tool_call>"],
)  # fmt: skip
def test_what_is_no_call_stays_text(text: str) -> None:
    assert read_reply(text, [TOOL]) == (text, [])
    assert read_reply(text, []) == (text, [])


def test_templates_without_tools_get_everything_as_text() -> None:
    messages = read_messages(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "1+2, 3+4"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]},
            {"role": "tool", "tool_call_id": "a", "content": "3"},
            {"role": "tool", "tool_call_id": "b", "content": "7"},
        ]
    )  # fmt: skip
    told = as_text(messages, [TOOL])
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    assert told[0]["content"].startswith("Be brief.")
    assert '"name": "add"' in told[0]["content"]
    assert told[2]["content"] == '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert told[3]["content"].count("<tool_response>") == 2
    with pytest.raises(BadRequest, match="must be text"):
        read_messages([{"role": "user", "content": [{"type": "image_url"}]}])


def test_a_server_lives_as_long_as_it_is_needed() -> None:
    with served_model("nano") as there:
        assert there.model == "nano"
        reply = OpenAIModel("nano", base_url=there.base_url).complete(
            [[{"role": "user", "content": "reverse: ant bee"}]], Sampling(max_tokens=8)
        )
        assert not reply[0].error
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{there.base_url}/models", trust_env=False)


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(ModelError, match="is no directory"), served_model("hf:" + "/nowhere/at/all"):
        pass


def test_the_vllm_command_has_tools_and_the_adapter(tmp_path: Any) -> None:
    (tmp_path / "adapter_config.json").write_text('{"r": 24}')
    command = vllm_command("model", "mine", "127.0.0.1", 8000, adapter=str(tmp_path))
    assert command[command.index("--lora-modules") + 1] == f"mine={tmp_path}"
    assert command[command.index("--max-lora-rank") + 1] == "32"
    assert "--enable-auto-tool-choice" in command

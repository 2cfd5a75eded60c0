"""The endpoint backend against a server on this machine that misbehaves in every usual way."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from endpoint_server import Answer, Handler, Server, chat, good, half, raw, status, trickle

from spade_envs.models import load_model
from spade_envs.models.answer import retry_after
from spade_envs.models.base import ChatModel, Completion, Conversation, ModelError, Sampling
from spade_envs.models.openai import OpenAIModel

KEY = "sk-secret-0123456789"
DEFAULT = Sampling()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("spade_envs.models.openai._FIRST_PAUSE", 0.001)
    server = Server()
    yield server
    server.close()


def ask(server: Server, *texts: str, sampling: Sampling = DEFAULT, **options: Any) -> list[Completion]:
    model = OpenAIModel("m", base_url=server.url, **options)
    try:
        return model.complete([_conversation(text) for text in texts or ("hello",)], sampling)
    finally:
        model.close()


def _conversation(text: str) -> Conversation:
    return [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}]


def test_a_request_says_what_was_asked(server: Server) -> None:
    sampling = Sampling(max_tokens=9, temperature=0.5, top_p=0.9, seed=4)
    first = ask(server, "a", "b", sampling=sampling, concurrency=1)
    assert first == [Completion("echo a", 7, 3, "stop"), Completion("echo b", 7, 3, "stop")]
    path, headers, body = server.seen[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    seeds = [body.pop("seed") for _, _, body in server.seen]
    assert body == {"model": "m", "messages": _conversation("a"), "max_tokens": 9, "temperature": 0.5, "top_p": 0.9}
    ask(server, "a", "b", sampling=sampling, concurrency=1)
    assert seeds[0] != seeds[1]
    assert [body["seed"] for _, _, body in server.seen[2:]] == seeds


def test_many_at_once_keep_their_order_and_the_bound(server: Server) -> None:
    running, most, guard = 0, 0, threading.Lock()

    def slow(handler: Handler, body: dict[str, Any]) -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with guard:
            running -= 1
        good()(handler, body)

    server.answers = [slow]
    texts = [str(number) for number in range(20)]
    assert [completion.text for completion in ask(server, *texts, concurrency=4)] == [f"echo {text}" for text in texts]
    assert 1 < most <= 4


@pytest.mark.parametrize(
    "bad",
    [status(429), status(500), status(503), raw(b"<html>gateway"), raw(b'{"choices": []}'), half, raw(b"[" * 9999)],
    ids=["429", "500", "503", "html", "no choices", "half", "nested"],
)  # fmt: skip
def test_a_passing_failure_is_tried_again(server: Server, bad: Answer) -> None:
    server.answers = [bad, bad, good("fine")]
    model = OpenAIModel("m", base_url=server.url)
    assert model.complete([_conversation("x")], Sampling())[0].text == "fine"
    assert (model.usage.requests, model.usage.retries, model.usage.completion_tokens) == (3, 2, 3)
    model.close()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (status(500, "boom"), "HTTP 500: boom"),
        (raw(b"garbage"), "not a chat completion: JSONDecodeError in 'garbage'"),
        (half, "broke off"),
    ],
)
def test_a_lasting_failure_is_one_failed_completion(server: Server, bad: Answer, reason: str) -> None:
    server.answers = [bad]
    (completion,) = ask(server, retries=2)
    assert (completion.text, completion.finish_reason) == ("", "error")
    assert reason in completion.error
    assert "tried 3 times" in completion.error
    assert len(server.seen) == 3


def test_one_bad_request_does_not_harm_the_others(server: Server) -> None:
    def picky(handler: Handler, body: dict[str, Any]) -> None:
        if body["messages"][-1]["content"] == "long":
            status(400, "maximum context length exceeded")(handler, body)
        else:
            good()(handler, body)

    server.answers = [picky]
    completions = ask(server, "a", "long", "b")
    assert [completion.text for completion in completions] == ["echo a", "", "echo b"]
    assert completions[1].error == "HTTP 400: maximum context length exceeded"
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    ("bad", "remedy"),
    [
        (status(401, f"Incorrect API key provided: {KEY}"), "check OPENAI_API_KEY"),
        (status(403), "refused the key"),
        (status(404, "The model m does not exist"), "knows no model 'm'"),
        (status(429, "You exceeded your current quota", "insufficient_quota"), "no quota left"),
        (status(301, Location="http://127.0.0.1:9/v1"), "give the final base URL"),
    ],
)
def test_an_unusable_endpoint_stops_the_run(server: Server, bad: Answer, remedy: str) -> None:
    server.answers = [bad]
    with pytest.raises(ModelError, match=remedy) as caught:
        ask(server, *(["x"] * 40), concurrency=2)
    assert KEY not in str(caught.value)
    assert len(server.seen) <= 4


def test_an_error_does_not_wait_for_requests_under_way(server: Server) -> None:
    released, finished = threading.Event(), threading.Event()

    def hang_or_refuse(handler: Handler, body: dict[str, Any]) -> None:
        if body["messages"][-1]["content"] == "hang":
            released.wait(30)
            finished.set()
        else:
            status(401)(handler, body)

    server.answers = [hang_or_refuse]
    with pytest.raises(ModelError, match="refused the key"):
        ask(server, "hang", "hang", "x")
    assert not finished.is_set()
    released.set()


def test_it_can_be_asked_from_within_an_event_loop(server: Server) -> None:
    async def notebook_cell() -> list[Completion]:
        return ask(server, "a")

    assert asyncio.run(notebook_cell())[0].text == "echo a"


def test_without_a_server_the_error_names_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spade_envs.models.openai._FIRST_PAUSE", 0.001)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = OpenAIModel("m", base_url=url)
    with pytest.raises(ModelError, match=f"{url} cannot be reached"):
        model.complete([_conversation("x")] * 3, Sampling())
    model.close()


def test_a_trickling_answer_is_bounded_by_wall_clock(server: Server) -> None:
    server.answers = [trickle, good("fine")]
    assert ask(server, request_seconds=0.3)[0].text == "fine"
    server.answers = [trickle]
    (completion,) = ask(server, request_seconds=0.2, total_seconds=0.3)
    assert "no whole answer in" in completion.error


def test_the_total_time_bounds_the_pauses_that_a_server_asks_for(server: Server) -> None:
    server.answers = [status(429, "slow down", Retry_After="3600")]
    (completion,) = ask(server, total_seconds=5)
    assert completion.error == "HTTP 429: slow down"
    server.answers = [status(429, Retry_After="0"), good("fine")]
    assert ask(server)[0].text == "fine"


def test_retry_after_in_both_forms() -> None:
    import httpx

    assert retry_after(httpx.Headers({"Retry-After": "2.5"})) == 2.5
    soon = retry_after(httpx.Headers({"Retry-After": formatdate(time.time() + 100, usegmt=True)}))
    assert soon is not None
    assert 90 < soon <= 100
    assert retry_after(httpx.Headers({"Retry-After": formatdate(0, usegmt=True)})) == 0
    assert [retry_after(httpx.Headers({"Retry-After": text})) for text in ("", "soon", "nan", "inf")] == [None] * 4


def test_parameters_that_a_server_refuses_are_left_out(server: Server) -> None:
    def modern(handler: Handler, body: dict[str, Any]) -> None:
        if "max_tokens" in body:
            status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")(handler, body)
        elif "temperature" in body:
            status(400, "Unsupported value: 'temperature' does not support 0.6.")(handler, body)
        else:
            good("fine")(handler, body)

    server.answers = [modern]
    assert [completion.text for completion in ask(server, "a", "b", "c")] == ["fine"] * 3
    assert server.seen[-1][2]["max_completion_tokens"] == 1024


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (chat("cut", "length"), Completion("cut", 7, 3, "length")),
        (chat(None, "length"), Completion("", 7, 3, "length")),
        (chat([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), Completion("ab", 7, 3)),
        (chat("12345678", usage=None), Completion("12345678", 0, 2)),
        (chat("x", "content_filter"), Completion("", 7, 3, "error", "the endpoint's content filter stopped it")),
        (chat("\ud800"), Completion("?", 7, 3)),
    ],
)
def test_forms_of_answers(server: Server, content: bytes, expected: Completion) -> None:
    server.answers = [raw(content)]
    assert ask(server) == [expected]


def test_the_key_is_logged_nowhere(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.answers = [status(500, f"your key {KEY} is fine, we are not"), status(400, f"bad {KEY}")]
    with caplog.at_level(logging.DEBUG):
        (completion,) = ask(server)
    assert "[key]" in completion.error
    assert KEY not in completion.error
    assert not [record for record in caplog.records if record.name.startswith("spade") and KEY in record.getMessage()]
    assert KEY not in repr(OpenAIModel("m", base_url=server.url))


@pytest.mark.parametrize("key", ["sk-\u20ac", "sk\nX-Evil: 1"])
def test_a_key_that_is_no_header_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError, match="OPENAI_API_KEY holds characters") as caught:
        OpenAIModel("m")
    assert key not in str(caught.value)


def test_a_local_server_needs_no_key_and_openai_does(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert ask(server, "a")[0].text == "echo a"
    assert "Authorization" not in server.seen[0][1]
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        OpenAIModel("m")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    model = load_model("openai:m")
    assert isinstance(model, ChatModel)
    assert (model.name, model.complete([_conversation("b")], Sampling())[0].text) == ("m", "echo b")
    model.close()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http:///v1"])
def test_base_urls_are_checked(url: str) -> None:
    with pytest.raises(ModelError, match="expected a base URL"):
        OpenAIModel("m", base_url=url)


def test_a_password_in_the_url_is_refused_without_showing_it() -> None:
    with pytest.raises(ModelError, match="must not hold") as caught:
        OpenAIModel("m", base_url="https://user:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("spec", ["", "gpt-4", "hf:", "openai:", "nano:x", "tgi:x"])
def test_unknown_model_names(spec: str) -> None:
    with pytest.raises(ModelError, match="expected nano, smollm2, hf:"):
        load_model(spec)


def test_a_hub_id_without_its_kind_is_told_with_it() -> None:
    with pytest.raises(ModelError, match=r"did you mean hf:some/model\?"):
        load_model("some/model")


def test_a_base_url_goes_with_endpoints_only() -> None:
    with pytest.raises(ModelError, match="did you mean openai:nano"):
        load_model("nano", base_url="http://localhost/v1")

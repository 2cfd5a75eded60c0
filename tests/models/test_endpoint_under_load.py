"""Endpoints that are full, that go away for a while, and that are paid by the token."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Handler, Server, chat, good, status

from spade_envs.models.base import Completion, Conversation, ModelError, Sampling
from spade_envs.models.journal import ReplyJournal
from spade_envs.models.openai import OpenAIModel
from spade_envs.models.throttle import Throttle
from spade_envs.models.usage import Prices, Usage


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("spade_envs.models.openai._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("spade_envs.models.openai._LONGEST_PAUSE", 0.02)
    server = Server()
    yield server
    server.close()


def conversations(count: int) -> list[Conversation]:
    return [[{"role": "user", "content": str(number)}] for number in range(count)]


def test_the_limit_halves_once_for_what_was_under_way_and_grows_by_one_a_round() -> None:
    throttle = Throttle(16)
    sent = time.monotonic()
    for _ in range(16):
        throttle.refused(sent, None)
    assert throttle.room == 8
    throttle.refused(time.monotonic() + 1, None)
    assert throttle.room == 4
    for _ in range(5):
        throttle.answered()
    assert throttle.room == 5
    for _ in range(1000):
        throttle.answered()
    assert throttle.room == 16
    for _ in range(20):
        throttle.refused(time.monotonic() + 2, None)
    assert throttle.room >= 1
    with pytest.raises(ValueError, match="at least 1"):
        Throttle(0)


def test_a_server_with_little_room_gets_fewer_requests_and_every_answer_comes(server: Server) -> None:
    running, refused, guard = 0, [0, 0], threading.Lock()
    answered = 0

    def three_at_once(handler: Handler, body: dict[str, Any]) -> None:
        nonlocal running, answered
        with guard:
            full = running >= 3
            running += not full
            refused[answered >= 60] += full
        if full:
            status(429)(handler, body)
            return
        time.sleep(0.01)
        with guard:
            running -= 1
            answered += 1
        good()(handler, body)

    server.answers = [three_at_once]
    model = OpenAIModel("m", base_url=server.url, concurrency=32)
    completions = model.complete(conversations(120), Sampling())
    assert [completion.text for completion in completions] == [f"echo {number}" for number in range(120)]
    assert model.usage.throttled == sum(refused) > 0
    # An unadapted client of 32 would be refused many times for each answer.
    assert refused[1] < 60


def test_a_pause_that_the_server_asks_for_holds_everybody(server: Server) -> None:
    times: list[float] = []

    def note(handler: Handler, body: dict[str, Any]) -> None:
        times.append(time.monotonic())
        (status(429, Retry_After="0.3") if len(times) == 1 else good())(handler, body)

    server.answers = [note]
    model = OpenAIModel("m", base_url=server.url, concurrency=1)
    assert all(completion.text for completion in model.complete(conversations(3), Sampling()))
    assert times[1] - times[0] >= 0.3


def test_a_full_server_that_asks_for_no_pause_gets_one(server: Server) -> None:
    server.answers = [status(429, Retry_After="0")]
    model = OpenAIModel("m", base_url=server.url, total_seconds=0.5)
    assert model.complete(conversations(1), Sampling())[0].error
    assert len(server.seen) < 100


def test_a_pause_that_is_too_long_fails_the_call_and_blocks_no_other(server: Server) -> None:
    server.answers = [status(429, Retry_After="1000000000"), good("fine")]
    model = OpenAIModel("m", base_url=server.url, total_seconds=60)
    started = time.monotonic()
    first, second = (model.complete(conversations(1), Sampling())[0] for _ in range(2))
    assert "429" in first.error
    assert second.text == "fine"
    assert time.monotonic() - started < 30


def test_an_endpoint_that_comes_back_is_waited_for(server: Server) -> None:
    model = OpenAIModel("m", base_url=server.url, retries=1, concurrency=4)
    assert model.complete(conversations(1), Sampling())[0].text == "echo 0"
    port = int(server.url.rsplit(":", 1)[1].removesuffix("/v1"))
    server.close()
    replies: list[Completion] = []
    asking = threading.Thread(target=lambda: replies.extend(model.complete(conversations(6), Sampling())))
    asking.start()
    time.sleep(0.3)  # many times as long as the counted repetitions take
    assert not replies
    again = Server(port)
    asking.join(20)
    again.close()
    assert [completion.text for completion in replies] == [f"echo {number}" for number in range(6)]


def test_an_endpoint_that_goes_before_its_first_answer_is_waited_for(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        model = OpenAIModel("m", base_url=f"http://127.0.0.1:{port}/v1", retries=1)
        replies: list[Completion] = []
        asking = threading.Thread(target=lambda: replies.extend(model.complete(conversations(1), Sampling())))
        asking.start()
        connection, _ = listening.accept()
        connection.recv(1)
        # Closed with bytes unread, the connection is reset; with a linger of zero the port is free at once.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    time.sleep(0.3)
    assert not replies
    again = Server(port)
    asking.join(20)
    again.close()
    assert [completion.text for completion in replies] == ["echo 0"]


def test_an_endpoint_that_stays_away_stops_the_run(server: Server) -> None:
    model = OpenAIModel("m", base_url=server.url, total_seconds=0.3)
    model.complete(conversations(1), Sampling())
    server.close()
    with pytest.raises(ModelError, match="did not come back"):
        model.complete(conversations(1), Sampling())


def test_replies_are_paid_for_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"

    def ask(count: int) -> tuple[list[str], Usage]:
        model = OpenAIModel("m", base_url=server.url, journal=ReplyJournal(path))
        return [completion.text for completion in model.complete(conversations(count), Sampling(seed=4))], model.usage

    first, _ = ask(3)
    with path.open("a") as file:
        file.write('{"key": "cut off by a ki')
    second, usage = ask(5)
    assert second[:3] == first
    assert (usage.reused, usage.requests, usage.completion_tokens) == (3, 2, 6)
    third, usage = ask(5)
    assert (third, usage.reused) == (second, 5)
    journal = ReplyJournal(path)
    journal.clear()
    assert not path.exists()
    assert len(journal) == 0
    assert ask(1)[1].reused == 0


def test_another_question_is_not_answered_from_the_journal(server: Server, tmp_path: Path) -> None:
    model = OpenAIModel("m", base_url=server.url, journal=ReplyJournal(tmp_path / "replies.jsonl"))
    same = conversations(1) * 2
    model.complete(same, Sampling(seed=1))
    assert model.usage.reused == 0  # equal conversations are different questions
    for sampling in (Sampling(seed=2), Sampling(seed=1, temperature=1.0), Sampling(seed=1, max_tokens=9)):
        model.complete(same, sampling)
    assert model.usage.reused == 0
    model.complete(same, Sampling(seed=1))
    assert model.usage.reused == 2


def test_failures_are_not_kept(server: Server, tmp_path: Path) -> None:
    server.answers = [status(400, "no"), good("fine")]
    model = OpenAIModel("m", base_url=server.url, journal=ReplyJournal(tmp_path / "replies.jsonl"))
    assert model.complete(conversations(1), Sampling())[0].error
    assert model.complete(conversations(1), Sampling())[0].text == "fine"


def test_the_key_is_not_in_the_journal(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-777")
    path = tmp_path / "replies.jsonl"
    OpenAIModel("m", base_url=server.url, journal=ReplyJournal(path)).complete(conversations(1), Sampling())
    assert "sk-secret-777" not in path.read_text()


def test_cost_is_counted_by_prices_or_by_what_the_server_says(server: Server) -> None:
    model = OpenAIModel("m", base_url=server.url, prices=Prices.parse("1.0,10"))
    model.complete(conversations(2), Sampling())
    assert model.usage.cost == pytest.approx(2 * (7 * 1.0 + 3 * 10) / 1e6)
    said = json.loads(chat("x"))
    said["usage"]["cost"] = 0.25
    server.answers = [lambda handler, body: handler.reply(200, json.dumps(said).encode())]
    model = OpenAIModel("m", base_url=server.url, prices=Prices(1.0, 10.0))
    model.complete(conversations(2), Sampling())
    assert model.usage.cost == pytest.approx(0.5)


@pytest.mark.parametrize("text", ["1", "a,b", "1,-2", "1,inf", "1,2,3"])
def test_prices_are_two_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="prices"):
        Prices.parse(text)

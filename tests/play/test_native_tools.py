"""Tool environments, in the published style and in ours, played through native tool calls over HTTP."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Handler, Server, status

from spade_envs.episode import Episode, PlayConfig, PlayTask, StopReason
from spade_envs.models import load_model
from spade_envs.models.base import Sampling, ToolCall
from spade_envs.play import play_episodes
from spade_envs.sandbox import Sandbox
from spade_envs.tool_calls import NativeTurn

TOOLS = Path(__file__).parents[1] / "data" / "tools"
Turn = tuple[str, list[tuple[str, Any]]]
Agent = Callable[[list[dict[str, Any]], list[dict[str, Any]]], Turn]
NATIVE = PlayConfig(tools="native", system_prompt="You work through tools. Finish with <answer>…</answer>.")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = Server()
    yield server
    server.close()


def _speak(agent: Agent) -> Callable[[Handler, dict[str, Any]], None]:
    """An endpoint behind which ``agent`` sits: messages and tools in, text and calls out."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        _check_history(body["messages"])
        text, calls = agent(body["messages"], body.get("tools", []))
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": f"c{len(body['messages'])}-{n}", "type": "function",
                 "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)}}
                for n, (name, given) in enumerate(calls)
            ]  # fmt: skip
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 9, "completion_tokens": 5}
        reply = {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}
        handler.reply(200, json.dumps(reply).encode())

    return answer


def _check_history(messages: list[dict[str, Any]]) -> None:
    """What endpoints insist on: every call is answered, by a message of its own, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
        else:
            assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])] or waiting
        for call in message.get("tool_calls", []):
            json.loads(call["function"]["arguments"])
    assert not waiting


def _play(agent: Agent, name: str, server: Server, sandbox: Sandbox, seeds: range = range(4)) -> list[Episode]:
    server.answers = [_speak(agent)]
    model = load_model("openai:scripted", base_url=server.url)
    program = sandbox.open((TOOLS / name).read_text())
    try:
        tasks = [PlayTask(program, seed) for seed in seeds]
        return play_episodes(model, tasks, sandbox, NATIVE, Sampling(max_tokens=64))
    finally:
        program.close()
        model.close()


def _said(messages: list[dict[str, Any]]) -> str:
    """What came after the agent's last turn."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "assistant"), default=0)
    return "\n".join(message["content"] for message in messages[last + 1 :])


def _clerk(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
    """Does what the user of the depot asks, reading ids and weights from the tools' answers."""
    said = _said(messages)
    others = [message["content"] for message in messages if message["role"] in ("user", "tool")]
    asked = next(text for text in reversed(others) if "parcel of" in text).splitlines()[-1]
    owner = asked.split("parcel of ")[1].split(" back")[0].split(",")[0].removesuffix(".")
    if "That is all" in said:
        return "<answer>done</answer>", []
    if "parcel of" in said:
        return f"I look for the parcel of {owner}.", [("search_parcels", {"owner": owner})]
    (parcel,) = json.loads(said.splitlines()[0])
    if "back" in asked:
        return "", [("set_status", {"parcel_id": parcel["parcel_id"], "status": "returned"})]
    fee = {"owner": owner, "amount": 2 * parcel["weight"]}
    return "", [("set_status", {"parcel_id": parcel["parcel_id"], "status": "held"}), ("charge_fee", fee)]


def _gardener(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
    said = _said(messages)
    if "Open the valve" in said:
        return "", [("read", {}), ("valve", {"position": "slow"})]
    levels = next(json.loads(m["content"].splitlines()[0]) for m in messages if m["content"].startswith("{"))
    driest = min(levels, key=levels.get)
    if "Water every bed" in said:
        thirsty = [bed for bed, level in levels.items() if level < 40] or [driest]
        return "", [("water", {"bed": bed, "units": 30}) for bed in thirsty]
    if "Close the valve" in said:
        return "Now closing.", [("valve", {"position": "closed"})]
    return f"<answer>{driest}</answer>", []


def _fool(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
    """Calls a random tool with random words of the conversation, and now and then says that it is done."""
    rng = random.Random(repr(messages))
    if rng.random() < 0.2:
        return "<answer>done</answer>", []
    function = rng.choice(tools)["function"]
    words = messages[1]["content"].split()
    return "", [(function["name"], {name: rng.choice(words) for name in function["parameters"]["properties"]})]


@pytest.mark.parametrize(
    ("name", "agent"), [("published_depot.py", _clerk), ("typed_greenhouse.py", _gardener)], ids=["published", "ours"]
)
def test_a_capable_agent_wins_and_a_random_one_does_not(
    name: str, agent: Agent, server: Server, sandbox: Sandbox
) -> None:
    won = _play(agent, name, server, sandbox)
    assert [episode.return_ for episode in won] == [1.0] * 4, [e.messages for e in won if e.return_ < 1][:1]
    assert {episode.stop for episode in won} == {StopReason.TERMINATED}
    roles = {message["role"] for episode in won for message in episode.messages}
    assert roles == {"system", "user", "assistant", "tool"}
    assert not any("<tools>" in message["content"] for episode in won for message in episode.messages)
    lost = _play(_fool, name, server, sandbox, range(8))
    assert [episode.return_ for episode in lost] == [0.0] * 8
    json.dumps([episode.to_dict() for episode in won + lost])


def test_the_endpoint_gets_the_schemas(server: Server, sandbox: Sandbox) -> None:
    _play(_gardener, "typed_greenhouse.py", server, sandbox, range(1))
    tools = {tool["function"]["name"]: tool["function"] for tool in server.seen[0][2]["tools"]}
    assert sorted(tools) == ["read", "valve", "water", "weather"]
    assert tools["valve"]["parameters"]["properties"]["position"]["enum"] == ["closed", "slow", "fast"]
    assert tools["water"]["parameters"]["required"] == ["bed", "units"]
    assert tools["read"]["parameters"]["properties"]["bed"]["description"] == "one bed; all of them if left out"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"bed": "mint", ', "not valid JSON"),
        ("[1, 2]", "must be a JSON object"),
        ('{"herb": 1}', "herb"),
        ("", "missing"),
    ],
    ids=["broken", "list", "unknown", "empty"],
)
def test_a_malformed_call_is_answered_with_what_is_wrong(
    arguments: str, words: str, server: Server, sandbox: Sandbox
) -> None:
    def clumsy(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
        return ("", [("water", arguments)]) if len(messages) < 4 else ("<answer>done</answer>", [])

    (episode,) = _play(clumsy, "typed_greenhouse.py", server, sandbox, range(1))
    answer = next(message for message in episode.messages if message["role"] == "tool")
    assert "Error" in answer["content"]
    assert words in answer["content"]
    assert episode.stop is StopReason.TERMINATED


def test_an_endpoint_without_tools_says_so(server: Server, sandbox: Sandbox) -> None:
    server.answers = [status(400, '"auto" tool choice requires --enable-auto-tool-choice')]
    program = sandbox.open((TOOLS / "typed_greenhouse.py").read_text())
    (episode,) = play_episodes(
        load_model("openai:m", base_url=server.url), [PlayTask(program, 0)], sandbox, NATIVE, Sampling()
    )
    program.close()
    assert episode.stop is StopReason.MODEL_ERROR
    assert "enable-auto-tool-choice" in episode.error


def test_calls_become_the_text_that_programs_read() -> None:
    turn = NativeTurn("Looking.", (ToolCall("1", "read", '{"bed": "mint"}'), ToolCall("2", "read", "")))
    assert turn.action == (
        'Looking.\n<tool_call>\n{"name": "read", "arguments": {"bed": "mint"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>'
    )
    first, second = turn.results("moist")
    assert (first["content"], first["tool_call_id"], second["tool_call_id"]) == ("moist", "1", "2")


def test_text_with_tags_is_answered_by_a_tool_message_and_other_text_by_the_user() -> None:
    assert NativeTurn("<tool_call>{}</tool_call>").results("x") == [{"role": "tool", "content": "x"}]
    assert NativeTurn("hello").results("x") == [{"role": "user", "content": "x"}]

"""Arguments harvested from what a player sees, and the search that tries them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.sandbox import Operation, Sandbox
from spade_envs.validation.rollout import Runner
from spade_envs.validation.tool_evidence import computable, opaque, tool_calls
from spade_envs.validation.tool_search import Search, search
from spade_envs.validation.tool_values import Values


def test_values_of_an_instruction_by_type() -> None:
    values = Values()
    values.instruction('Ship 12 units of "red paint" (SKU-77) to Ada Byron on 2025-03-04; mail ada@example.org.')
    assert values.candidates("units", {"type": "integer"})[0] == 12
    strings = values.candidates("item", {"type": "string"})
    assert {"red paint", "SKU-77", "Ada Byron", "2025-03-04", "ada@example.org"} <= set(strings)
    assert values.candidates("express", {"type": "boolean"}) == [True, False]
    assert values.candidates("mode", {"type": "string", "enum": ["slow", "fast"]}) == ["slow", "fast"]
    assert values.candidates("n", {"type": "integer", "default": 5})[0] == 5


def test_values_of_results_go_into_parameters_of_their_name() -> None:
    values = Values()
    values.instruction("Cancel the newest order of Maya.")
    values.read(json.dumps([{"order_id": "QX81", "owner": "Maya", "total": 30}, {"order_id": "ZP40", "owner": "Ben"}]))
    assert values.candidates("order_id", {"type": "string"})[:2] == ["QX81", "ZP40"]
    assert values.candidates("order", {"type": "string"})[:2] == ["QX81", "ZP40"]
    assert values.knows("QX81")
    assert values.knows({"a": ["ZP40", "Maya"]})
    assert not values.knows("QX82")


def test_calls_begin_with_required_parameters() -> None:
    values = Values()
    values.instruction("Set lamp 3 to 40 percent.")
    schema = {
        "type": "object",
        "properties": {"lamp": {"type": "integer"}, "level": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["lamp", "level"],
    }
    calls = values.calls("set", schema)
    assert {"lamp": 3, "level": 40} in calls[:4]
    assert any("note" in call for call in calls)
    assert len(calls) < 100


@given(
    st.text(max_size=300), st.sampled_from(["string", "integer", "number", "array", "object", "boolean", "null", ""])
)
def test_any_text_gives_arguments_of_the_type(text: str, kind: str) -> None:
    values = Values()
    values.instruction(text)
    values.read(text)
    found = values.candidates("x", {"type": kind})
    assert found
    assert len(found) <= 10
    kinds = {"string": str, "integer": int, "array": list, "object": dict, "boolean": bool}
    if kind in kinds:
        assert all(type(value) is kinds[kind] for value in found)
    json.dumps(found)


@pytest.mark.parametrize(
    ("value", "drawn"),
    [("K7Q2ZP", True), (48213, True), ("secret", False), ("2025-03-04", False), (12, False), ("Maya Ortiz", False)],
)
def test_what_looks_drawn_at_random(value: object, drawn: bool) -> None:
    assert opaque(value) is drawn


def test_numbers_that_follow_from_others() -> None:
    values = Values()
    values.instruction("There are 4200 here and 1300 there; take 15 percent.")
    assert computable(5500, values)
    assert computable(2100, values)
    assert computable(630, values)
    assert not computable(48213, values)


def test_calls_are_read_as_the_environment_reads_them() -> None:
    action = 'x <tool_call>{"name": "a", "arguments": {"b": 1}}</tool_call> <tool_call>{"name"</tool_call>'
    assert tool_calls(action) == [("a", {"b": 1})]
    assert tool_calls("nothing") == []


STAIRS = '''
class StairsEnv(ToolEnv):
    """Three steps, each needs the word that the one before returned."""

    def reset(self, seed=None):
        super().reset(seed)
        words = self.rng.sample(["amber", "birch", "cedar", "delta", "ember", "flint"], 3)
        self.words, self._state = words, {"done": 0}
        self._tools = [{"name": "say", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}]
        self._user_messages = [f"Begin with '{words[0]}'.", "Go on.", "Finish."]
        self._message_criteria = [lambda s: s["done"] >= 1, lambda s: s["done"] >= 2, lambda s: s["done"] >= 3]
        return self._user_messages[0], {}

    def tool_say(self, word):
        if word != self.words[self._state["done"]]:
            return "Error: not now"
        self._state["done"] += 1
        return f"next: {(self.words + ['nothing'])[self._state['done']]}"
'''


def _search(sandbox: Sandbox, source: str, operations: int) -> Search:
    program = sandbox.open(source)
    begun, schemas = program.run([Operation("make", 900, {}), Operation("reset", 900, 5), Operation("tools", 900)])[1:]
    found = search(Runner(program, 30.0), 5, schemas.unwrap(), begun.unwrap().observation, operations)
    program.close()
    return found


def test_a_chain_of_calls_is_found(sandbox: Sandbox) -> None:
    found = _search(sandbox, STAIRS, 1_200)
    assert found.won is not None
    assert len(found.won) == 3
    assert found.reached[1] == found.won[:2]
    assert found.worked == {"say"}


def test_a_budget_is_kept_and_an_end_is_noticed(sandbox: Sandbox) -> None:
    short = _search(sandbox, STAIRS, 20)
    assert short.won is None
    assert not short.exhausted
    assert short.calls <= 4
    stuck = _search(sandbox, STAIRS.replace('return f"next:', 'return f"ok" or f"next:'), 100_000)
    assert stuck.won is None
    assert stuck.exhausted
    assert set(stuck.reached) == {0}

"""The bases that generated programs may use."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.contract import MAX_CALLS, TerminalBaseEnv, TextEnv, ToolEnv, ToolUseBaseEnv
from spade_envs.sandbox.loader import load_program

WAREHOUSE = (Path(__file__).parent / "data/llm_style/e03_inventory_tool.py").read_text()


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


class LampEnv(ToolEnv):
    """Two instructions, one after the other."""

    def reset(self, seed=None):
        super().reset(seed)
        self._state = {"lamp": "off", "level": 0}
        self._user_messages = ["Switch the lamp on.", "Set the level to 3."]
        self._message_criteria = [lambda state: state["lamp"] == "on", lambda state: state["level"] == 3]
        return self._user_messages[0], {}

    def tool_switch(self, position: str) -> str:
        """Switch the lamp.

        More text.
        """
        if position not in ("on", "off"):
            raise ValueError(f"bad position {position!r}")
        self._state["lamp"] = position
        return f"lamp is {position}"

    def tool_level(self, value: int, unit: str = "percent") -> dict:
        self._state["level"] = value
        return {"level": value, "unit": unit}


# -- TextEnv ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("action", "answer"),
    [
        (r"\boxed{3}", "3"),
        (r"so \boxed{1} or \boxed{ 2 } ok", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("  plain ", "plain"),
        (r"\boxed{a{b{c}}d}", "a{b{c}}d"),
        (r"\boxed{done} and \boxed{open", "done"),
        (r"\boxed{\boxed{x}}", "x"),
        ("", ""),
        (r"\boxed {7}", "7"),
        (r"{\boxed{in}}", "in"),
        (r"\boxed{}", ""),
        (r"} \boxed{k}", "k"),
    ],
)
def test_answer_takes_the_last_balanced_box(action, answer):
    assert TextEnv.answer(action) == answer


def test_answer_is_linear_in_the_action():
    for action in ("\\boxed{" * 200_000, "{" * 500_000, "}" * 500_000, "\\boxed{" * 100_000 + "}" * 100_000):
        TextEnv.answer(action)


@given(st.text(alphabet="\\boxed{}a ", max_size=60))
def test_answer_of_any_text_is_a_part_of_it(action):
    assert TextEnv.answer(action) in action


def test_text_env_is_seeded_and_repeatable():
    one, two = TextEnv(max_turns=4), TextEnv(max_turns=4)
    for environment in (one, two):
        environment.reset(seed=5)
    assert one.rng.random() == two.rng.random() == random.Random(5).random()
    for environment in (one, two):
        environment.reset()
    assert one.rng.random() == two.rng.random()
    assert (one.max_turns, one.turn) == (4, 0)
    with pytest.raises(NotImplementedError, match="TextEnv must define step"):
        one.step("x")


# -- ToolEnv ------------------------------------------------------------------------------------------
def test_published_names_are_the_same_class():
    assert ToolUseBaseEnv is ToolEnv is TerminalBaseEnv


def test_published_program_is_played_to_reward_one():
    environment = load_program(WAREHOUSE)()
    for seed in range(5):
        environment.reset(seed=seed)
        target = environment._target
        stock = environment.step(call("get_stock", item=target))[0]
        half = str(int(stock) // 2)
        shipped = environment.step(call("ship", item=target, units=int(half)))
        assert shipped[1:4] == (0.0, False, False)
        _, reward, terminated, truncated, _ = environment.step(f"<answer>{half}</answer>")
        assert (reward, terminated, truncated) == (1.0, True, False)
        environment.reset(seed=seed)
        assert environment.step(environment.solution())[1:3] == (1.0, True)  # a bare JSON call, then the answer


def test_random_play_earns_nothing():
    environment = load_program(WAREHOUSE)()
    rng = random.Random(0)
    for seed in range(40):
        environment.reset(seed=seed)
        for _ in range(20):
            action = rng.choice(
                [call("list_items"), call("ship", item="bolt", units=1), "<answer>done</answer>", "hm", "{"]
            )
            _, reward, terminated, truncated, _ = environment.step(action)
            assert reward == 0.0
            if terminated or truncated:
                break


def test_messages_are_revealed_one_at_a_time():
    environment = LampEnv()
    observation, _ = environment.reset(seed=1)
    assert observation == "Switch the lamp on."
    assert "User" not in environment.step(call("switch", position="off"))[0]
    assert environment.step(call("switch", position="on"))[0] == "lamp is on\nUser: Set the level to 3."
    assert environment.step(call("level", value=3))[0].startswith('{"level": 3, "unit": "percent"}\nUser: That is all')
    assert environment.step("<answer>done</answer>")[1:4] == (1.0, True, False)


def test_all_criteria_must_hold_at_the_end():
    environment = LampEnv()
    environment.reset()
    environment.step(call("switch", position="on"))
    environment.step(call("level", value=3) + call("switch", position="off"))
    assert environment.step("<answer>done</answer>")[1] == 0.0
    environment.reset()
    assert environment.step(call("switch", position="on") + call("level", value=3) + "<answer>x</answer>")[1] == 1.0


def test_answer_and_criteria_both_count():
    environment = LampEnv()
    for answer, reward in (("3.0", 1.0), ("4", 0.0)):
        environment.reset()
        environment._expected_answer = 3
        environment.step(call("switch", position="on") + call("level", value=3))
        assert environment.step(f"<answer>{answer}</answer>")[1] == reward


def test_nothing_to_check_pays_nothing():
    environment = ToolEnv()
    environment.reset()
    _, reward, terminated, _, info = environment.step("<answer>done</answer>")
    assert (reward, terminated) == (0.0, True)
    assert "nothing to check" in info["criteria_errors"]


def test_a_criterion_that_raises_does_not_hold_and_is_reported():
    environment = LampEnv()
    environment.reset()
    environment._message_criteria = [lambda state: state["missing"], lambda: True]
    _, reward, terminated, _, info = environment.step("<answer>done</answer>")
    assert (reward, terminated) == (0.0, True)
    assert info["criteria_errors"] == "KeyError: 'missing'"


@pytest.mark.parametrize(
    ("action", "mention"),
    [
        ("nothing", "no tool call"),
        ("<tool_call>{bad</tool_call>", "not valid JSON"),
        (call("unknown"), "Tools: level, switch"),
        (call("switch", place="x"), "TypeError"),
        (call("switch", position="up"), "bad position"),
        ("<tool_call>[1]</tool_call>", "unknown tool"),
        ('<tool_call>{"name": "switch", "arguments": [1]}</tool_call>', "JSON object"),
        ("<tool_call>" + "[" * 100_000, "not valid JSON"),
        ('<tool_call>{"name": "__class__"}</tool_call>', "unknown tool"),
        ('<tool_call>{"name": 3}</tool_call>', "unknown tool"),
        (call("switch", self=1), "TypeError"),
        ('<tool_call>{"name": "switch", "arguments": "{"}</tool_call>', "JSON object"),
    ],
)
def test_errors_become_observations(action, mention):
    environment = LampEnv()
    environment.reset()
    observation, reward, terminated, truncated, _ = environment.step(action)
    assert mention in observation
    assert (reward, terminated, truncated) == (0.0, False, False)


def test_other_spellings_of_a_call():
    environment = LampEnv()
    for action in (
        '{"name": "switch", "arguments": {"position": "on"}}',
        '<tool_call>{"name": "switch", "parameters": {"position": "on"}}</tool_call>',
        '<tool_call>{"function": {"name": "switch", "arguments": "{\\"position\\": \\"on\\"}"}}</tool_call>',
        '<tool_call>[{"name": "switch", "arguments": {"position": "on"}}]</tool_call>',
        '<tool_call>{"name": "switch", "arguments": {"position": "on"}}',
    ):
        environment.reset()
        assert environment.step(action)[0].startswith("lamp is on")


def test_the_number_of_calls_is_bounded():
    environment = LampEnv()
    environment.reset()
    observation = environment.step(call("switch", position="on") * (MAX_CALLS + 5))[0]
    assert f"only the first {MAX_CALLS}" in observation


def test_turn_limit_truncates():
    environment = LampEnv(max_turns=2)
    environment.reset()
    assert environment.step("x")[3] is False
    assert environment.step("x")[1:4] == (0.0, False, True)
    environment.turn_count = 0
    assert environment.turn == 0


def test_schemas_from_signatures_and_from_tools():
    environment = LampEnv()
    level, switch = environment.get_tools()
    assert switch["function"] == {
        "name": "switch",
        "description": "Switch the lamp.",
        "parameters": {"type": "object", "properties": {"position": {"type": "string"}}, "required": ["position"]},
    }
    assert level["function"]["parameters"]["required"] == ["value"]
    assert level["function"]["parameters"]["properties"] == {
        "value": {"type": "integer"},
        "unit": {"type": "string", "default": "percent"},
    }
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    expected = [{"type": "function", "function": {"name": "f", "description": "F", "parameters": parameters}}]
    for tools in (
        {"f": {"description": "F", "parameters": parameters}},
        [{"name": "f", "description": "F", "parameters": parameters}],
        expected,
    ):
        environment._tools = tools
        assert environment.get_tools() == expected


def test_annotations_of_tools_survive_the_policy():
    cls = load_program(
        "class AEnv(ToolEnv):\n    def reset(self, seed=None): return super().reset(seed)\n"
        "    def tool_f(self, a: int, b: str = 'x') -> str:\n"
        "        'Do f.'\n        return a\n"
    )
    function = cls().get_tools()[0]["function"]
    assert function["parameters"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}}
    assert function["description"] == "Do f."


def test_types_and_descriptions_become_a_schema():
    cls = load_program(
        """
from typing import Any, Literal, Optional

class AEnv(ToolEnv):
    def tool_f(self, size: Literal["small", "large"], tags: list[str], note: Optional[str] = None,
               ratio: "float | None" = 0.5, *, strict: bool = False, extra: Any = None):
        \'\'\'Do f.

        size: how large it is
        tags (list): words about it
        \'\'\'
""".replace("\\'", "'")
    )
    parameters = cls().get_tools()[0]["function"]["parameters"]
    assert parameters["required"] == ["size", "tags"]
    assert parameters["properties"] == {
        "size": {"type": "string", "enum": ["small", "large"], "description": "how large it is"},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "words about it"},
        "note": {"type": "string"},
        "ratio": {"type": "number", "default": 0.5},
        "strict": {"type": "boolean", "default": False},
        "extra": {},
    }


@given(st.text(max_size=200), st.sampled_from(["", "<tool_call>", "</tool_call>", "<answer>", "</answer>", "{"]))
def test_any_action_gives_a_well_formed_step(text, marker):
    environment = LampEnv()
    environment.reset()
    observation, reward, terminated, truncated, info = environment.step(marker + text + marker)
    assert isinstance(observation, str)
    assert reward == 0.0
    assert isinstance(terminated, bool)
    assert isinstance(truncated, bool)
    assert isinstance(info, dict)

"""Looking into tool environments: what workers tell, and that callers believe no worker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.sandbox import Operation, Sandbox
from spade_envs.sandbox.inspection import ToolInspection, read_inspection
from spade_envs.sandbox.written import writable

PLANT = """
class PlantEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.bed = self.rng.randint(10, 99)
        self._state = {"beds": {self.bed: {"water": 0}}, "log": []}
        self._tools = []
        self._user_messages = ["Water the bed.", "Weed it."]
        self._message_criteria = [lambda s: s["beds"][self.bed]["water"] == 3, lambda s: s["weeds"] == 0, %s]
        return "Water the bed.", {}

    def tool_water(self, bed: int, litres: int = 1, *, slowly):
        self._state["beds"][bed]["water"] = litres
        return "watered"

    @staticmethod
    def tool_now(zone="UTC", **more):
        return "noon"
"""


def _inspect(sandbox: Sandbox, source: str, asked: str, *actions: str) -> ToolInspection:
    program = sandbox.open(source)
    operations = [Operation("make", 1, {}), Operation("reset", 1, 7)]
    operations += [Operation("step", 1, action) for action in actions]
    outcome = program.run([*operations, Operation("inspect", 1, asked)])[-1]
    program.close()
    value = outcome.unwrap()
    assert isinstance(value, ToolInspection)
    return value


def _water(bed: int, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': 'water', 'arguments': {'bed': bed, **arguments}})}</tool_call>"


def test_conditions_values_and_methods_are_told(sandbox: Sandbox) -> None:
    seen = _inspect(sandbox, PLANT % "True", "full")
    assert [criterion.holds for criterion in seen.criteria] == [False, None, True]
    assert seen.criteria[1].error == "KeyError: 'weeds'"
    assert seen.criteria[1].fixed == ("weeds",)
    assert seen.criteria[0].fixed == ()
    assert seen.messages == ("Water the bed.", "Weed it.")
    assert list(seen.state.values()) == [0]
    method = seen.methods["water"]
    assert method.parameters == ("bed", "litres", "slowly")
    assert method.required == ("bed", "slowly")
    assert method.annotations == {"bed": "int", "litres": "int"}
    assert seen.methods["now"].parameters == ("zone",)
    assert seen.methods["now"].open


def test_the_digest_tells_states_apart_and_leaves_counters_out(sandbox: Sandbox) -> None:
    source = PLANT % "True"
    bed = int(next(iter(_inspect(sandbox, source, "full").state)).split("[")[2].rstrip("]"))
    digests = [
        _inspect(sandbox, source, "brief", *actions).digest
        for actions in (
            (),
            ("nothing",),
            (_water(bed, litres=2, slowly=True),),
            (_water(bed, litres=3, slowly=True),),
            (_water(bed, litres=1, slowly=True), _water(bed, litres=2, slowly=True)),
        )
    ]
    assert digests[0] == digests[1]
    assert digests[2] == digests[4]
    assert len({digests[0], digests[2], digests[3]}) == 3


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        ('lambda s: s["log"] == ["7"]', "a number as text"),
        ('lambda s: s["log"] == [7.5] or 7 in s["log"] and "x" in s', ""),
        ('lambda s: "Seven" in s["log"]', "a capital first letter"),
    ],
)
def test_what_a_condition_misses_by(sandbox: Sandbox, condition: str, held: str) -> None:
    logged = '"seven"' if "Seven" in condition else "7"
    source = (PLANT % condition).replace('"log": []', f'"log": [{logged}]')
    mends = _inspect(sandbox, source, "why").criteria[2].mends
    assert ([held] if held else []) == [mend.rpartition(": ")[2] for mend in mends[:1]]


def test_programs_of_other_kinds_have_no_conditions(sandbox: Sandbox) -> None:
    plain = """
class PlainEnv:
    def reset(self, seed=None):
        return "x", {}

    def step(self, action):
        return "", 0.0, True, False, {}
"""
    seen = _inspect(sandbox, plain, "full")
    assert seen.criteria == ()
    assert seen.methods == {}


def test_cycles_and_strange_values_end(sandbox: Sandbox) -> None:
    odd = (PLANT % "True").replace(
        '"log": []}',
        '"log": [float("nan"), 10**30, {3, 1}, (None, b"x"), self]}\n        self._state["me"] = self._state',
    )
    seen = _inspect(sandbox, odd, "full")
    assert str(10**30) in seen.state.values()


@pytest.mark.parametrize(
    ("tool", "known"),
    [
        ('self._state["a"] = 1', True),
        ('s = self._state\n        s["a"] = 1', True),
        ("self._state[x] = 1", False),
        ("self._state.update(x)", False),
        ("self.helper(self._state)", False),
        ('self.other()\n        return self._state["c"]', True),
        ("setattr(self, x, 1)", False),
    ],
)
def test_keys_that_tools_may_write(tool: str, known: bool) -> None:
    source = f"""
class XEnv:
    def reset(self, seed=None):
        self._state = {{"b": 1}}
    def helper(self, s):
        s["z"] = 1
    def other(self):
        self._state["b"] = 2
        self.count = 1
    def tool_x(self, x):
        {tool}
"""
    found = writable(source)
    assert found.anything is not known
    if "other" in tool:
        assert {"b", "c"} <= found.words
        assert not found.leaves_alone(["count"])
    elif known:
        assert "a" in found.words
        assert "b" not in found.words


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=12,
)
GOOD: dict[str, Any] = {"criteria": [[True, "", [], []]], "digest": "x", "current": 0}


@given(st.dictionaries(st.sampled_from([*GOOD, "messages", "state", "hidden", "methods", "expected"]), TREES))
def test_what_a_hostile_worker_writes_is_refused_or_well_formed(changed: dict[str, Any]) -> None:
    try:
        seen = read_inspection(json.dumps({**GOOD, **changed}))
    except ValueError:
        return
    assert all(type(criterion.holds) in (bool, type(None)) for criterion in seen.criteria)
    assert all(type(value) in (str, int, float, bool, type(None)) for value in (*seen.state.values(), *seen.hidden))
    assert all(type(message) is str for message in seen.messages)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000, '{"criteria": [[1, "", [], []]]}'])
def test_no_inspection(text: str) -> None:
    with pytest.raises(ValueError):
        read_inspection(text)


def test_texts_of_subclasses_of_str_forge_nothing(sandbox: Sandbox) -> None:
    source = """
class Sly(str):
    def __getitem__(self, part):
        return Sly('", "forged": "')

    def encode(self, *how):
        return b"\\xff"

    def __str__(self):
        return 'another'

class SlyEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self._state = {"n": 0}
        self._user_messages = [Sly("Say it.")]
        self._message_criteria = [lambda s: False]
        self._expected_answer = Sly("the answer")
        return "Say it.", {}

    def tool_noop(self):
        return "ok"
"""
    seen = _inspect(sandbox, source, "full")
    assert seen.messages == ("another",)  # what the player is shown, and no forged JSON


def test_a_state_that_is_not_a_number_is_told(sandbox: Sandbox) -> None:
    source = PLANT.replace('{"water": 0}', '{"water": float("nan")}') % "True"
    seen = _inspect(sandbox, source, "why")
    assert [criterion.holds for criterion in seen.criteria] == [False, None, True]

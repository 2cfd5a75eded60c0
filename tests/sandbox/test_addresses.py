"""Which programs can see addresses, that those which cannot do the same in every process, and siblings."""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_envs.sandbox import Operation, Sandbox
from spade_envs.sandbox.addresses import sees_addresses, shows_address
from spade_envs.sandbox.loader import compile_source
from spade_envs.validation import validate

SOUND = sorted((Path(__file__).parent.parent / "data" / "validation" / "sound").glob("*.py"))

SEEING = [
    "x = id([])",
    "x = max([1], key=id)",
    "x = hash(None)",
    "x = set('ab')",
    "x = [*{None, int}]",
    "def f(a):\n    return [item for item in {a, None}]",
    "x = {y for y in (None, int)}",
    "for x in {None, 1}:\n    pass",
    "x = list({None: 1}.keys() | {int: 2}.keys())",
    "x = list({None: 1}.keys() - {int: 2}.keys())",
    "import typing\nx = typing.Set([None, int])",
    "from pprint import pformat\nx = pformat({None: 1, int: 2})",
]
BLIND = [
    "x = {'a': 1}",
    "def f(a):\n    return a in {'x', 'y'}",
    "x = [key for key, value in {'a': 5}.items() if value - 3]",
    "class Box(object):\n    identity = 5",
    "x = f'{5:>3} {[1, 2]}'",
]


@pytest.mark.parametrize("source", SEEING)
def test_what_can_show_addresses(source: str) -> None:
    assert sees_addresses(compile_source(source).code)


@pytest.mark.parametrize("source", BLIND)
def test_what_cannot(source: str) -> None:
    assert not sees_addresses(compile_source(source).code)


def test_texts_with_addresses() -> None:
    assert shows_address(str(object()))
    assert not shows_address("Look at 0 or at x")


def _played(sandbox: Sandbox, source: str, *, twin: bool) -> list[str] | None:
    """All that an episode shows, None if the program may see addresses."""
    program = sandbox.open(source, twin=twin)
    try:
        if program.info.sees_addresses:
            return None
        start = [Operation("make", 1, {}), Operation("reset", 1, 5), Operation("hint", 1), Operation("solution", 1)]
        shown = program.run(start)
        actions = [*(shown[-1].value or ()), "1", "go north", "\\boxed{7}"]
        return [*map(str, shown), *map(str, program.run([Operation("step", 1, action) for action in actions]))]
    finally:
        program.close()


def test_programs_without_addresses_do_the_same_in_another_process(sandbox: Sandbox) -> None:
    told = 0
    for path in SOUND:
        source = path.read_text()
        here = _played(sandbox, source, twin=False)
        if here is not None:
            told += 1
            assert _played(sandbox, source, twin=True) == here, path.name
    assert told > len(SOUND) / 2


GAME = """
import json
class CountEnv:
    made = []
    def __init__(self):
        self.made.append(1)
    def reset(self, seed=None):
        return f"{len(self.made)} were made; {TEXT}", {}
    def step(self, action):
        return "", 0.0, True, False, {}
"""


def test_siblings_share_a_module(sandbox: Sandbox) -> None:
    program = sandbox.open(GAME.replace("TEXT", "1"))
    operations = [Operation("make", 1, {}), Operation("make", 2, {}), Operation("sibling", 1, 3)]
    operations += [Operation("reset", number, 0) for number in (1, 2, 3)]
    shown = [outcome.unwrap().observation[0] for outcome in program.run(operations)[3:]]
    assert shown == ["2", "1", "2"]
    program.close()


def test_a_sibling_is_brought_back(sandbox: Sandbox) -> None:
    program = sandbox.open(GAME.replace("made.append(1)", "x = 1").replace("TEXT", "1"))
    program.run([Operation("make", 1, {}), Operation("sibling", 1, 2), Operation("reset", 2, 0)])
    sandbox.vacate(program)
    assert program.run([Operation("step", 2, "x")])[0].unwrap().terminated
    assert program.run([Operation("sibling", 7, 8)])[0].error is not None
    program.close()


@pytest.mark.parametrize("text", ["json.dumps", "id(json.dumps) % 1000"])
def test_programs_that_show_addresses_of_the_process_are_refused(sandbox: Sandbox, text: str) -> None:
    report = validate(GAME.replace("TEXT", text).replace("made.append(1)", "x = 1"), sandbox=sandbox)
    assert "determinism" in {finding.probe for finding in report.refusals}

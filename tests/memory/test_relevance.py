"""Plain descriptions find the program they describe, among 24 hand-written statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord

_DATA = Path(__file__).parents[1] / "data" / "memory"


def _lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (_DATA / name).read_text(encoding="utf-8").splitlines()]


def _program(statement: dict[str, str]) -> str:
    state = "\n".join(f"        self.{name} = self.rng.randint(1, 9)" for name in statement["names"].split())
    return f'''import random

class {statement["name"]}:
    """{statement["doc"]}"""
    def __init__(self, max_turns=10):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn = 0
{state}
        return {statement["text"]!r}, {{}}

    def step(self, action):
        self.turn += 1
        return "Wrong.", 0.0, False, self.turn >= self.max_turns, {{}}
'''


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("statements")) as opened:
        opened.add_many(
            EnvironmentRecord.create(_program(one), one["name"], skill=one["skill"])
            for one in _lines("statements.jsonl")
        )
        yield opened


@pytest.mark.parametrize("case", _lines("queries.jsonl"), ids=lambda case: case["query"])
def test_a_description_finds_its_program(memory: Memory, case: dict[str, str]) -> None:
    names = [record.name for record, _ in memory.search(case["query"], k=3)]
    assert case["expect"] in names[: int(case["within"])]

"""Programs and memories for tests of pools."""

from __future__ import annotations

import hashlib
from pathlib import Path

from spade_envs.memory import Memory
from spade_envs.memory.transfer import Stored, read_stored
from spade_envs.pools import Outcome, Pool, import_pool, open_pool
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox
from spade_envs.validation import ValidationConfig, validate

QUICK = ValidationConfig(
    seeds=(0, 1), hidden_seeds=0, play_seeds=2, contentless_seeds=1, confirm_seeds=2, max_steps=8, cross_process=False
)

FREE = """
class FreeEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        return f"Guess {self.rng.random()}", {}

    def step(self, action):
        return "Well done.", 1.0, True, False, {}
"""

TOOLS = '''
import random

class ShelfEnv(ToolUseBaseEnv):
    """A shelf of books behind two tools."""

    def reset(self, seed=None):
        random.seed(seed)
        self._books = {f"B{n}": random.choice(["in", "out"]) for n in range(30)}
        self._book = random.choice(sorted(self._books))
        self._state = {"reserved": None}
        self._tools = [
            {"type": "function", "function": {"name": "status", "description": "Whether a book is in.", "parameters": {
                "type": "object", "properties": {"book": {"type": "string"}}, "required": ["book"]}}},
            {"type": "function", "function": {"name": "reserve", "description": "Reserve a book.", "parameters": {
                "type": "object", "properties": {"book": {"type": "string"}}, "required": ["book"]}}},
        ]
        self._user_messages = [f"Please reserve {self._book} and say whether it is in."]
        self._message_criteria = [lambda state: state["reserved"] == self._book]
        self._current_msg = 0
        return self._user_messages[0], {"tools": self._tools}

    def tool_status(self, book):
        return {"status": self._books.get(book, "unknown")}

    def tool_reserve(self, book):
        self._state["reserved"] = book
        return {"reserved": book}
'''


def program(number: int) -> str:
    """A sound program; another number is another program."""
    return f'''
class Multiple{number}Env(TextEnv):
    """Work out a multiple and a rest."""

    def reset(self, seed=None):
        super().reset(seed)
        self.a = self.rng.randint(100, 999)
        self.b = self.rng.randint(100, 999)
        return f"Say {{self.a}} times {number} plus {{self.b}}.", {{}}

    def step(self, action):
        right = self.answer(action) == str(self.a * {number} + self.b)
        return ("Right." if right else "Wrong."), float(right), True, False, {{}}

    def solution(self):
        return str(self.a * {number} + self.b)
'''.lstrip()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def bring(source: str | Path | Pool, folder: Path, **options: object) -> list[Outcome]:
    """Import a pool into the memory in ``folder``."""
    pool = source if isinstance(source, Pool) else open_pool(source)
    options = {"config": QUICK, "isolation": "static", **options}
    with Memory.open(folder) as memory:
        return list(import_pool(pool, memory, **options))  # type: ignore[arg-type]


def held(folder: Path, *, archived: bool | None = None) -> list[Stored]:
    """All that the memory in ``folder`` holds."""
    with Memory.open(folder, read_only=True) as memory:
        return list(read_stored(memory, archived=archived))


def make_memory(folder: Path, sandbox: Sandbox, count: int = 4) -> Path:
    """A memory of validated records with plays, hints, parents, an archived one, statistics without single plays."""
    with Memory.open(folder) as memory:
        parents: tuple[str, ...] = ()
        for number in range(2, 2 + count):
            report = validate(program(number), sandbox=sandbox, config=QUICK)
            record = EnvironmentRecord.create(
                program(number), report.name, skill="Mathematical Reasoning" if number % 2 else "Optimization",
                hint="Multiply first, then add." if number == 3 else "", document_id=f"d{number}", document="Ü & |x|",
                parents=parents, generator=f"model-{number % 2}", licence="Apache-2.0", proven=report.proven,
                report=report.to_dict(), meta={"mends": [], "n": number, "odd": "\\ud800"}, created_at=1000.5 + number,
                max_turns=number,
            )  # fmt: skip
            memory.add(record, run="run-a" if number < 4 else "run-b")
            parents = (record.id,)
            memory.record_plays(record.id, [0.1, 1.0, -0.3, 0.0], hinted=False, run="cal", step=3)
            memory.record_plays(record.id, [1.0, 0.7], hinted=True, run="cal", step=4)
        memory.evict(count - 1, run="evicting")
    return folder

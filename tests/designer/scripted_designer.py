"""A scripted model that writes real programs, and a run of it as a process that can be killed."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from spade_envs.corpus import Corpus
from spade_envs.designer import Designer, GenerateSummary, PromptSet, generate
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.models import Completion, Conversation, Sampling
from spade_envs.sandbox import Sandbox
from spade_envs.validation import ValidationConfig

FAST = ValidationConfig(seeds=(0, 1, 2), play_seeds=2, confirm_seeds=4, cross_process=False)

TEMPLATE = '''class {name}Env(TextEnv):
    """{about}"""

    def reset(self, seed=None):
        super().reset(seed)
        self.x, self.y = self.rng.randrange(1000, 10**6), self.rng.randrange(1000, 10**6)
        return f"{about} of {{self.x}} and {{self.y}}? Answer in \\\\boxed{{{{}}}}.", {{}}

    def step(self, action):
        self.turn += 1
        good = self.answer(action) == self.solution()
        return ("right" if good else "wrong"), float(good), True, False, {{}}

    def solution(self):
        x, y = self.x, self.y
{lines}
        return str(x)
'''
LINES = (
    "x = x + y * {a}", "x, y = y - {a}, x", "x = x * {a} - y", "y = int(str(y)[::-1])", "x = sum(map(int, str(x * y)))",
    "x = max(x, y) % 9973 + {a}", "x = len([d for d in str(x ** {a}) if d in '13579']) + y", "y = y // {a} + x",
)  # fmt: skip


def program(rng: random.Random) -> str:
    """A program that no other seed gives: a chain of three to six operations on two numbers."""
    lines = [rng.choice(LINES).format(a=rng.randint(2, 9)) for _ in range(rng.randint(3, 6))]
    about = f"What comes out of chain {rng.randrange(10**6)}"
    name = "".join(rng.choice("BCDFGKLMNPRST") + rng.choice("aeiou") for _ in range(3)).capitalize()
    return TEMPLATE.format(name=name, about=about, lines="\n".join(f"        {line}" for line in lines))


class ScriptedModel:
    """Writes programs by seed and place; some replies hold no code, a broken program, or the one before again."""

    name = "scripted"

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause
        self.calls = 0

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        self.calls += 1
        time.sleep(self.pause)
        return [self._reply(index, conversation, sampling) for index, conversation in enumerate(conversations)]

    def close(self) -> None:
        pass

    def _reply(self, index: int, conversation: Conversation, sampling: Sampling) -> Completion:
        rng = random.Random(f"{sampling.seed}/{index}")
        kind = rng.random()
        if kind < 0.1:
            return Completion("I would rather not.", 20, 5)
        if kind < 0.2:
            return Completion(f"```python\n{program(rng).replace('return', 'retrun')}```", 20, 50)
        if kind < 0.3:
            return Completion("", 0, 0, "error", "HTTP 500: boom")
        if kind < 0.4:
            rng = random.Random(sampling.seed)  # the same program at every such place of a round
        return Completion(f"Let me think.\n```python\n{program(rng)}```", 20, 100)


def run(folder: Path, count: int, *, resume: bool, pause: float = 0.0) -> GenerateSummary:
    """Generate into ``folder / "memory"`` with a log beside it."""
    corpus = Corpus.open(folder / "corpus.jsonl")
    with Memory.open(folder / "memory", embedder=HashedTokenEmbedder()) as memory, Sandbox() as sandbox:
        designer = Designer(
            PromptSet.load("games"), memory, sandbox, validation=FAST, generator="scripted", own_hint=True
        )
        return generate(
            ScriptedModel(pause), corpus, designer, memory,
            count=count, seed=7, run="test", round_size=4, log=folder / "log.jsonl", resume=resume,
        )  # fmt: skip


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), resume=sys.argv[3] == "resume", pause=0.05)

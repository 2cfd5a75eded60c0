"""Programs for the command line, and the command line in a process of its own, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUM = '''
class SumEnv(TextEnv):
    """Add two numbers."""

    def reset(self, seed=None):
        super().reset(seed)
        self.a = self.rng.randint(100, 999)
        self.b = self.rng.randint(100, 999)
        return f"Say the sum of {self.a} and {self.b}.", {}

    def step(self, action):
        right = self.answer(action) == str(self.a + self.b)
        return ("Right." if right else "Wrong."), float(right), True, False, {}

    def hint(self):
        return "Add the units first, then carry."

    def solution(self):
        return str(self.a + self.b)
'''

PAYS_FOR_NOTHING = """
class FreeEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        return f"Guess {self.rng.random()}", {}

    def step(self, action):
        return "Well done.", 1.0, True, False, {}
"""


def spade(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``spade`` with the default memory in ``home``."""
    return subprocess.run(
        [sys.executable, "-m", "spade_envs.cli.app", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "SPADE_HOME": str(home), "COLUMNS": "200", **environment},
        check=False,
    )

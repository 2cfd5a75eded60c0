"""One sandbox for the tests that do not kill it."""

import pytest

from spade_envs.sandbox import Sandbox

COUNTER = '''
class CounterEnv:
    """Counts the actions."""

    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.secret = random.randint(0, 10**9)
        self.turn = 0
        return f"secret {self.secret}", {"turn": 0}

    def step(self, action):
        self.turn += 1
        done = self.turn >= self.max_turns
        return f"{self.turn} {action} {random.random()}", 1.0 if done else 0.0, done, False, {"turn": self.turn}
'''


def step_program(body: str, header: str = "") -> str:
    """Return a program whose ``step`` has this body (unindented lines)."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    return (
        f"{header}\n"
        "class AbuseEnv:\n"
        "    def __init__(self, max_turns=10, **kwargs):\n"
        "        self.turn = 0\n"
        "    def reset(self, seed=None):\n"
        "        self.turn = 0\n"
        '        return "start", {}\n'
        "    def step(self, action):\n"
        f"{lines}"
    )


@pytest.fixture(scope="session")
def sandbox():
    with Sandbox() as shared:
        yield shared


@pytest.fixture(scope="session")
def counter_source() -> str:
    return COUNTER


@pytest.fixture(scope="session")
def step_source():
    return step_program

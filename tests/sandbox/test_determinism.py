"""An episode depends on its seed and its actions, on nothing else."""

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spade_envs.sandbox import Operation, Sandbox

DICE = """
import random
from random import randint, Random
import uuid
import time
import datetime

BASE = random.random()

class DiceEnv:
    def __init__(self, sides=6):
        self.sides = sides
        self.bonus = random.randint(0, 9)
        self.own = Random()

    def reset(self, seed=None):
        self.turn = 0
        self.names = {"ann", "bob", "cy", str(random.random())}
        return f"{randint(1, 10**9)} {self.names} {self.bonus} {BASE} {self.own.random()} {uuid.uuid4()}", {}

    def step(self, action):
        self.turn += 1
        deck = list(range(20))
        random.shuffle(deck)
        if action == "seed":
            random.seed(5)
        text = f"{deck} {random.gauss(0, 1)} {sorted({action, 'x', str(self.turn)}, key=hash)} {time.time()}"
        return text + f" {datetime.datetime.now()} {self.own.randint(1, 99)}", 0.0, self.turn >= 6, False, {}

    def hint(self):
        return str(random.random())

    def solution(self):
        return str(random.randrange(1000))
"""
ACTIONS = ["a", "b", "seed", "c", "", "d"]


def _episode(session, seed=7) -> list[object]:
    return [session.reset(seed), session.hint(), *(session.step(action) for action in ACTIONS), session.solution()]


@pytest.fixture(scope="module")
def alone(sandbox):
    return _episode(sandbox.open(DICE).session())


def test_interleaved_equals_alone(sandbox, alone):
    program = sandbox.open(DICE)
    noise, session = program.session(), program.session()
    noise.reset(99)
    seen: list[object] = [session.reset(7)]
    noise.step("seed")
    seen.append(session.hint())
    for action in ACTIONS:
        noise.step("z")
        seen.append(session.step(action))
        noise.hint()
        program.session()
    seen.append(session.solution())
    assert seen == alone


def test_again_in_the_same_session(sandbox, alone):
    session = sandbox.open(DICE).session()
    first = _episode(session)
    assert first == alone
    # the bonus and the own generator were drawn in the constructor, and are the constructor's own
    again = _episode(session)
    assert [type(result) for result in again] == [type(result) for result in alone]
    assert again[1] == alone[1]


def test_in_one_batch(sandbox, alone):
    program = sandbox.open(DICE)
    operations = [Operation("make", 1), Operation("reset", 1, 7), Operation("hint", 1)]
    operations += [Operation("step", 1, action) for action in ACTIONS] + [Operation("solution", 1)]
    assert [outcome.unwrap() for outcome in program.run(operations)][1:] == alone


def test_in_the_twin(sandbox, alone):
    assert _episode(sandbox.open(DICE, twin=True).session()) == alone


def test_in_another_sandbox(alone):
    with Sandbox() as other:
        assert _episode(other.open(DICE).session()) == alone


def test_in_another_process_with_another_hash_seed(alone):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_determinism as t\n"
        "from spade_envs.sandbox import default_sandbox\n"
        "print(t._episode(default_sandbox().open(t.DICE).session()))"
    )
    for seed in ("1", "2"):
        folder = __file__.rpartition("/")[0]
        completed = subprocess.run(
            [sys.executable, "-c", code, folder],
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            timeout=60,
            check=True,
        )
        assert completed.stdout.strip() == str(alone)


def test_a_copy_goes_on_alike_and_alone(sandbox):
    session = sandbox.open(DICE).session()
    session.reset(3)
    session.step("a")
    copied = session.copy()
    expected = [copied.step(action) for action in ACTIONS[1:]]
    assert [session.step(action) for action in ACTIONS[1:]] == expected


@given(st.integers(0, 2**63 - 1))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_seeds(sandbox, seed):
    program = sandbox.open(DICE)
    assert _episode(program.session(), seed) == _episode(program.session(), seed)


def test_a_reset_without_a_seed_goes_on_from_where_it_is(sandbox):
    one, two = sandbox.open(DICE).session(), sandbox.open(DICE).session()
    for session in (one, two):
        session.reset(1)
    assert one._run("reset") == two._run("reset")
    sandbox.close()
    assert one._run("reset") == two._run("reset")
    with pytest.raises(ValueError, match="64 bits"):
        one.reset(2**80)


def test_other_seeds_give_other_episodes(sandbox):
    session = sandbox.open(DICE).session()
    assert len({session.reset(seed).observation for seed in range(10)}) == 10

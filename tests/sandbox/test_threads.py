"""Threads that use one sandbox wait for each other only where they use the same program."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from spade_envs.sandbox import Limits, Operation, ProgramDied, ProgramTimeout, Sandbox, SandboxError

PATIENCE = 60.0


def _episode(program, seed):
    session = program.session()
    results = [session.reset(seed), *(session.step(f"a{turn}") for turn in range(6))]
    session.close()
    return results


def _wait_until(condition):
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come to that")


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as executor:
        yield executor


def test_a_long_step_holds_up_its_own_program_only(pool, counter_source, step_source):
    with Sandbox(Limits(soft_seconds=600.0, hard_seconds=600.0)) as sandbox:
        stuck, other = sandbox.open(step_source("while True:\n    pass")), sandbox.open(counter_source)
        session = stuck.session()
        session.reset(0)
        undisturbed = _episode(other, 5)
        running = pool.submit(session.step, "x")
        _wait_until(lambda: stuck.seat.busy)
        assert pool.submit(_episode, other, 5).result(PATIENCE) == undisturbed
        opened = pool.submit(sandbox.open, counter_source).result(PATIENCE)
        assert pool.submit(_episode, opened, 5).result(PATIENCE) == undisturbed
        assert not running.done()
        waiting = pool.submit(stuck.run, [Operation("step", session.number, "y")])
        os.kill(stuck.seat.worker.pid, signal.SIGKILL)
        with pytest.raises(ProgramDied):
            running.result(PATIENCE)
        assert type(waiting.result(PATIENCE)[0].error) is ProgramDied


def test_many_threads_on_few_workers(pool, counter_source):
    with Sandbox(max_workers=2) as sandbox:
        programs = [sandbox.open(counter_source) for _ in range(5)]
        expected = [_episode(programs[0], seed) for seed in range(3)]
        plays = [(program, seed) for seed in range(3) for program in programs]
        found = list(pool.map(lambda play: _episode(*play), plays, timeout=PATIENCE))
        assert found == [expected[seed] for _, seed in plays]
        batches = [(program, [Operation("make", 99), Operation("reset", 99, 1)]) for program in programs]
        for outcomes in pool.map(lambda _: sandbox.run_many(batches), range(4), timeout=PATIENCE):
            assert [made.error or begun.unwrap() for made, begun in outcomes] == [expected[1][0]] * 5
        assert len(sandbox._processes.occupied()) <= 2


def test_one_program_in_several_threads(pool, counter_source):
    with Sandbox() as sandbox:
        program = sandbox.open(counter_source)
        expected = _episode(program, 7)
        for results in pool.map(lambda _: _episode(program, 7), range(12), timeout=PATIENCE):
            assert results == expected


def test_closing_waits_for_what_runs(pool, counter_source, step_source):
    with Sandbox(Limits(soft_seconds=0.3)) as sandbox:
        program = sandbox.open(step_source("while True:\n    pass"))
        session = program.session()
        session.reset(0)
        running = pool.submit(session.step, "x")
        _wait_until(lambda: program.seat.busy or running.done())
        pool.submit(program.close).result(PATIENCE)
        with pytest.raises(ProgramTimeout):
            running.result(PATIENCE)
        with pytest.raises(SandboxError, match="closed"):
            session.step("x")
        sandbox.close()
        assert _episode(sandbox.open(counter_source), 1)

"""Sessions that are brought back by playing them again are where they were."""

import itertools
import os
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_envs.sandbox import Operation, ProgramDied, ProgramRaised, ProgramTimeout, Sandbox, StepResult
from spade_envs.sandbox.replay import Journal
from spade_envs.sandbox.types import Limits, Outcome, ResetResult

WALK = '''
class WalkEnv:
    """A drunken walk; refuses to go back."""

    def __init__(self, width=5):
        self.width = width

    def reset(self, seed=None):
        self.place = random.randrange(self.width)
        self.path = [self.place]
        return f"at {self.place}", {}

    def step(self, action):
        if action == "back":
            self.place -= 1
            raise ValueError("no way back")
        self.place = (self.place + random.choice([1, 2, 3])) % self.width
        self.path.append(self.place)
        return f"at {self.place} by {action}: {self.path}", 0.25, len(self.path) > 30, False, {"n": len(self.path)}

    def hint(self):
        return f"about {self.place + random.randrange(100)}"
'''


def _play(sandbox, disturb) -> list[object]:
    """Play two interleaved sessions and a copy; call ``disturb`` between any two operations."""
    program = sandbox.open(WALK)
    one, two = program.session(width=7), program.session()
    seen: list[object] = [one.reset(3), two.reset(4)]
    for turn in range(6):
        disturb()
        seen.append(one.step(f"go{turn}"))
        disturb()
        seen.append(two.step("on"))
        if turn == 2:
            with pytest.raises(ProgramRaised):
                two.step("back")
            disturb()
            seen.append(two.hint())
    copied = one.copy()
    disturb()
    seen += [copied.step("left"), one.step("right"), copied.step("left"), one.step("left")]
    disturb()
    seen.append(two.reset(9))
    disturb()
    seen.append(two.step("again"))
    program.close()
    return seen


def test_eviction_and_revival_equal_an_uninterrupted_run(counter_source):
    with Sandbox() as sandbox:
        undisturbed = _play(sandbox, lambda: None)
    with Sandbox(max_workers=1) as sandbox:
        other = sandbox.open(counter_source)

        def evict():
            other.run([Operation("make", 1), Operation("reset", 1, 0)])

        assert _play(sandbox, evict) == undisturbed


def test_a_zygote_that_dies_or_a_sandbox_that_is_closed_costs_nothing():
    with Sandbox() as sandbox:
        undisturbed = _play(sandbox, lambda: None)

        calls = itertools.count()

        def disturb():
            call = next(calls)
            if call % 4 == 1:
                os.kill(sandbox._processes.zygote((False, ())).pid, signal.SIGKILL)
            elif call % 4 == 3:
                sandbox.close()

        assert _play(sandbox, disturb) == undisturbed


def test_more_programs_than_workers(counter_source):
    with Sandbox(max_workers=3) as sandbox:
        programs = [sandbox.open(counter_source) for _ in range(8)]
        batches = [(program, [Operation("make", 1), Operation("reset", 1, 5)]) for program in programs]
        first = sandbox.run_many(batches)
        assert all(outcomes == first[0] for outcomes in first)
        for turn in range(3):
            steps = sandbox.run_many([(program, [Operation("step", 1, "a")]) for program in programs])
            assert all(outcomes == steps[0] for outcomes in steps)
            assert steps[0][0].unwrap().info == {"turn": turn + 1}
            assert len(sandbox._processes.occupied()) <= 3


def test_the_same_program_twice_in_one_call(counter_source):
    with Sandbox() as sandbox:
        program = sandbox.open(counter_source)
        first, second = sandbox.run_many(
            [(program, [Operation("make", 1), Operation("reset", 1, 5)]), (program, [Operation("step", 1, "a")])]
        )
        assert first[1].unwrap().info == {"turn": 0}
        assert second[0].unwrap().info == {"turn": 1}


def test_a_revived_session_that_differs_is_lost_not_wrong():
    with Sandbox() as sandbox:
        program = sandbox.open(
            "class TallyEnv:\n    tally = []\n"
            "    def reset(self, seed=None):\n        return '', {}\n"
            "    def step(self, action):\n        self.tally.append(action)\n"
            "        return str(len(self.tally)), 0.0, False, False, {}\n",
            shared=True,
        )
        one, two = program.session(), program.session()
        one.reset(0)
        two.reset(0)
        assert [one.step("x").observation, two.step("x").observation, one.step("x").observation] == ["1", "2", "3"]
        sandbox.close()
        with pytest.raises(ProgramDied, match="not deterministic"):
            two.step("x")
        with pytest.raises(ProgramDied, match="lost"):
            two.step("x")
        assert program.session().reset(0).observation == ""


def test_a_session_that_timed_out_is_not_revived(step_source):
    with Sandbox(Limits(soft_seconds=0.1)) as sandbox:
        body = 'if action == "loop":\n    while True:\n        pass\nreturn "fine", 0.0, False, False, {}'
        session = sandbox.open(step_source(body)).session()
        session.reset(0)
        with pytest.raises(ProgramTimeout):
            session.step("loop")
        sandbox.close()
        with pytest.raises(ProgramDied, match="lost"):
            session.step("x")


OPERATIONS = st.lists(
    st.one_of(
        st.builds(Operation, st.just("make"), st.integers(0, 2), st.just({})),
        st.builds(Operation, st.just("reset"), st.integers(0, 2), st.integers(0, 3)),
        st.builds(Operation, st.just("step"), st.integers(0, 2), st.sampled_from(["a", "b", "bad"])),
        st.builds(Operation, st.just("copy"), st.integers(0, 2), st.integers(0, 2)),
        st.builds(Operation, st.just("sibling"), st.integers(0, 2), st.integers(0, 2)),
        st.builds(Operation, st.just("close"), st.integers(0, 2), st.none()),
    ),
    max_size=40,
)


class _Machine:
    """A deterministic worker in miniature: a session's state is the list of what happened to it since the reset."""

    def __init__(self):
        self.states = {}

    def run(self, operation):
        name, number, argument = operation
        if name == "make":
            self.states[number] = ["made"]
            return Outcome()
        if number not in self.states:
            return Outcome(error=ProgramDied("lost"))
        if name == "close":
            del self.states[number]
            return Outcome()
        if name == "copy":
            self.states[argument] = list(self.states[number])
            return Outcome()
        if name == "sibling":
            self.states[argument] = ["made"]
            return Outcome()
        state = self.states[number]
        if name == "reset":
            state[:] = ["made", f"reset {argument}"]
            return Outcome(ResetResult(str(state), {}))
        state.append(argument)
        if argument == "bad":
            return Outcome(error=ProgramRaised("ValueError", "bad"))
        return Outcome(StepResult(str(state), 0.0, False, False, {}))


@given(OPERATIONS)
@settings(max_examples=300)
def test_a_journal_reaches_every_state_again(operations):
    machine, journal = _Machine(), Journal()
    refused = journal.unknown(operations)
    for place, operation in enumerate(operations):
        outcome = machine.run(operation)
        assert (place in refused) == (type(outcome.error) is ProgramDied)
        if place not in refused:
            journal.note_all([operation], [outcome])
    other = _Machine()
    replayed = journal.replay()
    assert journal.verify(replayed, [other.run(operation) for operation in replayed]) == set()
    assert other.states == machine.states

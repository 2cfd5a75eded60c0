"""One random draw of an episode is another one, and all others are what they were."""

import ast
import random

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.generator import NUDGES, Random, nudge
from spade_envs.sandbox.replay import Journal
from spade_envs.sandbox.types import Operation

SOURCE = '''
import random
class DrawsEnv(TextEnv):
    """Draws."""
    def reset(self, seed=None):
        super().reset(seed)
        other = random.Random(seed)
        random.seed(seed)
        drawn = [[draw(8) for _ in range(8)] for draw in (self.rng.getrandbits, other.getrandbits, random.getrandbits)]
        return str(drawn), {}
    def step(self, action):
        return str(self.rng.random()), 0.0, False, False, {}
'''


@pytest.mark.parametrize("number", [0, 1, 2, 7, 100, NUDGES - 1])
def test_one_word_changes(number: int) -> None:
    plain, nudged = random.Random(5), Random(5)
    nudge(nudged, number)
    words = [(plain.getrandbits(32), nudged.getrandbits(32)) for _ in range(624)]
    assert [place for place, (old, new) in enumerate(words) if old != new] == [number // 2]
    old, new = words[number // 2]
    assert (old ^ new) >> 24 == (0x35, 0x5B)[number % 2]


def test_every_generator_of_an_episode_is_nudged_until_it_is_taken_back() -> None:
    with Sandbox() as sandbox:
        program = sandbox.open(SOURCE)
        number = program.new_session_number()

        def draws(nudged: int | None) -> list[list[int]]:
            outcomes = program.run([Operation("nudge", number, nudged), Operation("reset", number, 3)])
            found: list[list[int]] = ast.literal_eval(outcomes[-1].value.observation)
            return found

        program.run([Operation("make", number, {})])
        plain = draws(None)
        for word in range(8):
            changed = draws(2 * word)
            for old, new in zip(plain, changed, strict=True):
                assert [place for place in range(8) if old[place] != new[place]] == [word]
        assert draws(None) == plain


def test_a_revived_session_is_nudged_as_it_was() -> None:
    source = SOURCE.replace("return str(self.rng.random())", "return str(10 ** len(action) + self.rng.getrandbits(8))")
    with Sandbox() as sandbox:
        program = sandbox.open(source)
        number = program.new_session_number()
        begin = [Operation("nudge", number, 17), Operation("reset", number, 3)]  # the ninth draw, which step() makes
        program.run([Operation("make", number, {})])
        expected = program.run([*begin, Operation("step", number, "a")])[-1].value.observation
        plain = program.run([Operation("nudge", number), Operation("reset", number, 3), Operation("step", number, "a")])
        assert plain[-1].value.observation != expected
        journal = Journal()
        done = [Operation("make", number, {}), Operation("reset", number, 1), *begin]
        journal.note_all(done, program.run(done))
        again = journal.replay()
        assert again == [done[0], *begin]
        outcomes = program.run([*again, Operation("step", number, "a")])
        assert outcomes[-1].value.observation == expected

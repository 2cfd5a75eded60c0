"""One random draw of an episode is another one, and all others are what they were."""

import ast
import random
from collections.abc import Iterator

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.generator import Random, current, use_generator
from spade_envs.sandbox.replay import Journal
from spade_envs.sandbox.types import Nudge, Operation

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


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    use_generator(random.Random(0))


def _words(change: Nudge | None, seed: int = 5) -> list[int]:
    use_generator(random.Random(0))
    current.nudge = change
    made = Random(seed)
    return [made.getrandbits(32) for _ in range(700)]


@pytest.mark.parametrize("word", [0, 1, 7, 623])
@pytest.mark.parametrize(("variant", "drawn"), [(0, 0), (1, 1 << 30)])
def test_one_word_changes(word: int, variant: int, drawn: int) -> None:
    plain, changed = _words(None), _words(Nudge("word", 0, word, variant))
    assert plain[0] == random.Random(5).getrandbits(32)
    assert [place for place in range(624) if plain[place] != changed[place]] == [word]
    assert changed[word] == drawn


def test_a_tail_changes_from_its_word_on_and_a_poor_stream_has_four_values() -> None:
    plain = _words(None)
    tails = [_words(Nudge("tail", 0, 5, variant)) for variant in (1, 2)]
    assert all(tail[:5] == plain[:5] and tail[5:9] != plain[5:9] for tail in tails)
    assert tails[0][5:9] != tails[1][5:9]
    poor = [_words(Nudge("poor", 4, 0, variant))[:64] for variant in range(6)]
    assert {word for words in poor for word in words} == {0, 1 << 28, 1 << 29, 1 << 30}
    assert len({tuple(words) for words in poor}) == 6
    assert all(words.count(0) > 8 for words in poor)


def test_generators_are_numbered_by_their_seeds() -> None:
    plain = [_words(None, seed) for seed in (5, 6)]
    use_generator(random.Random(0))
    current.nudge = Nudge("word", 1, 0, 0)
    made = [Random(seed).getrandbits(32) for seed in (5, 6, 5, 6)]
    assert made == [plain[0][0], 0, plain[0][0], 0]


def test_an_episode_has_its_own_generator_and_those_that_it_makes() -> None:
    with Sandbox() as sandbox:
        program = sandbox.open(SOURCE)
        number = program.new_session_number()

        def draws(change: Nudge | None) -> list[list[int]]:
            outcomes = program.run([Operation("nudge", number, change), Operation("reset", number, 3)])
            found: list[list[int]] = ast.literal_eval(outcomes[-1].value.observation)
            return found

        program.run([Operation("make", number, {})])
        plain = draws(None)
        assert plain[0] == plain[1] == plain[2]
        # self.rng, Random(seed) and random.seed(seed) have one seed, and so one number.
        for word in range(8):
            for variant, first_bits in ((0, 0), (1, 64)):
                changed = draws(Nudge("word", 1, word, variant))
                assert [row[:word] + row[word + 1 :] for row in changed] == [
                    row[:word] + row[word + 1 :] for row in plain
                ]
                assert {row[word] for row in changed} == {first_bits}
        assert draws(Nudge("word", 0, 0, 0)) == plain  # module-level functions were seeded by the program
        assert draws(Nudge("word", 2, 0, 0)) == plain
        assert draws(None) == plain


def test_a_revived_session_is_nudged_as_it_was() -> None:
    source = SOURCE.replace("return str(self.rng.random())", "return str(10 ** len(action) + self.rng.getrandbits(8))")
    with Sandbox() as sandbox:
        program = sandbox.open(source)
        number = program.new_session_number()
        begin = [
            Operation("nudge", number, Nudge("word", 1, 8, 1)),
            Operation("reset", number, 3),
        ]  # the ninth draw, which step() makes
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

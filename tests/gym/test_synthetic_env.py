import json
import pickle
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sample_programs import BOXED, FAULTY, GUESS, WALK, record
from spade_envs.env import SyntheticEnv, make_class
from spade_envs.sandbox import ProgramQuarantined, ProgramRaised
from spade_envs.spaces import UnicodeText
from spade_envs.stepping import MAX_TEXT


@pytest.fixture
def make(sandbox):
    made = []

    def make_env(source, render_mode=None, max_turns=None, **fields):
        env = make_class(record(source, **fields))(sandbox=sandbox, render_mode=render_mode, max_turns=max_turns)
        made.append(env)
        return env

    yield make_env
    for env in made:
        env.close()


def test_class_carries_the_record():
    first = record(GUESS, skill="Logical Deduction", document="Numbers and guesses. " * 40, generator="human")
    cls = make_class(first)
    assert issubclass(cls, SyntheticEnv)
    assert cls.__name__ == "GuessEnv"
    assert cls.record is first
    assert cls.metadata["render_modes"] == ["ansi"]
    assert cls.metadata["record_id"] == first.id
    assert cls.metadata["skill"] == "Logical Deduction"
    assert make_class(first) is cls
    assert make_class(record(WALK)) is not cls
    for title in ("Description", "Action Space", "Observation Space", "Starting State", "Rewards"):
        assert f"## {title}\n" in cls.__doc__
    for title in ("Episode End", "Arguments", "Version History"):
        assert f"## {title}\n" in cls.__doc__
    assert "Find a secret number between 1 and 20." in cls.__doc__
    assert "Logical Deduction" in cls.__doc__
    assert first.id in cls.__doc__


def test_records_that_differ_have_classes_that_differ():
    plain, hinted = record(GUESS), record(GUESS, hint="Halve the range.")
    plain_class = make_class(plain)
    assert make_class(hinted) is not plain_class
    assert make_class(hinted).record.hint == "Halve the range."


def test_base_class_has_no_program():
    with pytest.raises(TypeError, match="make_class"):
        SyntheticEnv()


@pytest.mark.parametrize("source", [GUESS, FAULTY, BOXED, WALK])
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_check_env_finds_nothing(make, source, render_mode):
    env = make(source, render_mode)
    env.spec = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*not having a spec.*")
        check_env(env)


def test_an_episode(make):
    env = make(GUESS)
    observation, info = env.reset(seed=7)
    assert observation.startswith("Guess my number between 1 and 20.")
    assert info["seed"] == 7
    assert "hint" not in info
    (answer,) = env.solution()
    wrong = "1" if answer != "1" else "2"
    observation, reward, terminated, truncated, info = env.step(wrong)
    assert (observation, reward, terminated, truncated) == ("higher" if wrong == "1" else "lower", 0.0, False, False)
    assert info == {"turn": 1}
    observation, reward, terminated, truncated, info = env.step(f"I think it is \\boxed{{{answer}}}.")
    assert (observation, reward, terminated, truncated) == ("Right!", 1.0, True, False)
    assert type(reward) is float
    assert type(terminated) is bool
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("3")
    assert env.reset(seed=7)[0].startswith("Guess")


def test_seeds(make):
    first, second = make(GUESS), make(GUESS)
    assert first.reset(seed=3) == second.reset(seed=3)
    following = [first.reset()[1]["seed"] for _ in range(3)]
    assert following == [second.reset()[1]["seed"] for _ in range(3)]
    assert len(set(following)) == 3
    assert first.reset(seed=3)[0] != first.reset(seed=4)[0]
    assert first.reset(seed=10**30)[1]["seed"] == 10**30 % 2**63


def test_turn_limits(make):
    env = make(FAULTY, max_turns=2)
    for seed in (0, 1):
        env.reset(seed=seed)
        assert env.step("a")[2:4] == (False, False)
        assert env.step("b")[2:4] == (False, True)
    env.reset(seed=0)
    env.step("a")
    assert env.step("rich")[2:4] == (True, False)
    with pytest.raises(ValueError, match="max_turns"):
        make(GUESS, max_turns=-1)


def test_the_record_may_limit_the_turns(sandbox):
    cls = make_class(record(FAULTY, max_turns=1))
    for max_turns, truncated in ((None, True), (0, False), (2, False)):
        env = cls(sandbox=sandbox, max_turns=max_turns)
        env.reset(seed=0)
        assert env.step("a")[3] is truncated
        env.close()


def test_arguments_reach_the_constructor(sandbox):
    env = make_class(record(GUESS))(sandbox=sandbox, arguments={"max_turns": 1})
    env.reset(seed=0)
    assert env.step("no")[3] is True
    env.close()


def test_hints(make):
    env = make(GUESS)
    plain, _ = env.reset(seed=1)
    hinted, info = env.reset(seed=1, options={"hint": True})
    assert hinted.startswith(plain)
    assert hinted.endswith(f"Hint: {info['hint']}")
    assert info["hint"].startswith("It is ")
    assert env.reset(seed=1, options={"hint": False})[0] == plain
    stored = make(GUESS, hint="Halve the range.")
    assert stored.reset(options={"hint": True})[1]["hint"] == "Halve the range."
    with pytest.raises(ValueError, match="has no hint"):
        make(BOXED).reset(options={"hint": True})


def test_hint_survives_clipping(make):
    source = GUESS.replace('return f"Guess my number', 'return "x" * 65_500 + f"Guess my number')
    observation, _ = make(source, hint="Halve the range.").reset(seed=0, options={"hint": True})
    assert len(observation) <= MAX_TEXT
    assert observation.endswith("Hint: Halve the range.")


@pytest.mark.parametrize(
    ("action", "kind"), [("raise", "raised"), ("hang", "timeout"), ("nan", "protocol"), ("shape", "protocol")]
)
def test_a_failing_program_truncates_the_episode(make, action, kind):
    env = make(FAULTY)
    env.reset(seed=0)
    env.step("hello")
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation in env.observation_space
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["error"].startswith(f"{kind}: ")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("hello")
    env.reset(seed=0)
    assert env.step("hello")[0] == "you said hello"


def test_a_program_that_dies_gets_a_new_worker_until_it_is_quarantined(make):
    env = make(FAULTY)
    env.reset(seed=0)
    assert env.step("hang")[3] is True
    assert env.reset(seed=1)[0].startswith("Say something.")
    assert env.step("hang")[3] is True
    with pytest.raises(ProgramQuarantined, match="not run any more"):
        env.reset(seed=2)


def test_memory_hogs_end_the_episode(make):
    env = make(FAULTY)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("die")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["error"]


def test_reset_raises_what_the_program_raises(make):
    env = make(FAULTY)
    with pytest.raises(ProgramRaised, match="no such start"):
        env.reset(seed=666)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("hello")
    assert env.reset(seed=1)[0].startswith("Say")


def test_rewards_and_observations_are_clipped(make):
    env = make(FAULTY)
    env.reset(seed=0)
    observation, reward, *_ = env.step("long")
    assert len(observation) <= MAX_TEXT
    assert reward == 0.25
    assert env.step("rich")[1] == 1.0


@given(st.text(alphabet=st.characters(), max_size=40))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_an_action(sandbox, text):
    env = _ANY.setdefault("env", make_class(record(FAULTY))(sandbox=sandbox))
    env.reset(seed=0)
    observation, _, _, truncated, info = env.step(text)
    assert observation in env.observation_space
    assert not truncated
    json.dumps(info)


_ANY = {}


def test_actions_that_are_no_text(make):
    env = make(GUESS)
    env.reset(seed=0)
    for action in (3, None, b"3", ["3"]):
        with pytest.raises(gymnasium.error.InvalidAction, match="expected an action of type str"):
            env.step(action)


def test_huge_actions_reach_the_program(make):
    env = make(FAULTY)
    env.reset(seed=0)
    observation, _, terminated, truncated, _ = env.step("a" * 1_000_000)
    assert len(observation) <= MAX_TEXT
    assert not terminated
    assert not truncated


def test_render(make):
    env = make(GUESS, render_mode="ansi")
    observation, _ = env.reset(seed=0)
    assert env.render() == observation
    env.step("no")
    assert env.render() == "> no\nNot a number: no\n[reward 0]"
    with pytest.raises(ValueError, match="render_mode"):
        make(GUESS, render_mode="human")
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert make(GUESS).render() is None


def test_tools(make):
    env = make(WALK)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.tools()
    env.reset(seed=0)
    assert env.tools()[0]["function"]["name"] == "look"
    plain = make(BOXED)
    plain.reset(seed=0)
    assert plain.tools() == []


def test_close_is_final_for_the_episode_only(make):
    env = make(GUESS)
    env.close()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("3")
    assert env.reset(seed=0)[0].startswith("Guess")


def test_a_pickled_environment_is_a_fresh_one(make):
    env = make(GUESS, render_mode="ansi", max_turns=3)
    env.arguments = {"max_turns": 9}
    env.reset(seed=0)
    copy = pickle.loads(pickle.dumps(env))
    assert type(copy) is type(env)
    assert copy.render_mode == "ansi"
    assert copy.max_turns == 3
    assert copy.arguments == {"max_turns": 9}
    with pytest.raises(gymnasium.error.ResetNeeded):
        copy.step("3")


def test_spaces_are_texts(make):
    env = make(GUESS)
    assert env.observation_space == env.action_space == UnicodeText(MAX_TEXT)
    assert str(env) == "<GuessEnv instance>"

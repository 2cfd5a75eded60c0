import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_programs import FAULTY, GUESS, WALK, record
from spade_envs.env import make_class
from spade_envs.sandbox import ProgramQuarantined, ProgramRaised
from spade_envs.vector import SyntheticVectorEnv


@pytest.fixture
def make(sandbox):
    made = []

    def make_envs(source, num_envs=3, **arguments):
        records = [record(one) for one in source] if isinstance(source, list) else record(source)
        envs = SyntheticVectorEnv(records, num_envs, sandbox=sandbox, **arguments)
        made.append(envs)
        return envs

    yield make_envs
    for envs in made:
        envs.close()


def _same(first, second):
    """Compare results of reset or step, numpy arrays and object arrays within included."""
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            _same(first[key], second[key])
    elif isinstance(first, tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second):
            _same(one, other)
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        assert first.tolist() == second.tolist()
    else:
        assert first == second


ACTIONS = st.sampled_from(["1", "5", "\\boxed{10}", "x", "raise", "rich", "right"])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("source", [GUESS, FAULTY, WALK])
@given(rounds=st.lists(st.tuples(ACTIONS, ACTIONS, ACTIONS), min_size=1, max_size=12), seed=st.integers(0, 50))
@settings(max_examples=8, deadline=None)
def test_equals_gymnasiums_synchronous_environments(sandbox, mode, source, rounds, seed):
    cls = make_class(record(source))
    ours = SyntheticVectorEnv(record(source), 3, sandbox=sandbox, autoreset_mode=mode, max_turns=4)
    theirs = SyncVectorEnv([lambda: cls(sandbox=sandbox, max_turns=4)] * 3, autoreset_mode=mode)
    try:
        assert ours.single_observation_space == theirs.single_observation_space
        assert ours.observation_space == theirs.observation_space
        _same(ours.reset(seed=seed), theirs.reset(seed=seed))
        for actions in rounds:
            _same(ours.step(actions), theirs.step(actions))
        _same(ours.reset(), theirs.reset())
    finally:
        ours.close()
        theirs.close()


def test_disabled_autoreset_is_the_default_and_waits_for_the_mask(make):
    envs = make(GUESS, num_envs=3, arguments={"max_turns": 30})
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    observations, infos = envs.reset(seed=[4, 4, 5])
    assert observations[0] == observations[1] != observations[2]
    assert infos["seed"].tolist() == [4, 4, 5]
    secret = None
    for guess in range(1, 21):
        observations, rewards, terminations, _, _ = envs.step((str(guess), "x", "x"))
        if terminations[0]:
            secret = guess
            break
    assert secret is not None
    assert rewards.tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(gymnasium.error.ResetNeeded, match="sub-environment 0 has ended"):
        envs.step(("1", "x", "x"))
    observations, rewards, terminations, truncations, infos = envs.step((None, "y", "y"))
    assert observations == ("Right!", "Not a number: y", "Not a number: y")
    assert rewards.tolist() == [0.0, 0.0, 0.0]
    assert terminations.tolist() == [True, False, False]
    assert truncations.tolist() == [False, False, False]
    assert infos["_turn"].tolist() == [False, True, True]
    mask = np.array([True, False, False])
    observations, infos = envs.reset(seed=[9, None, None], options={"reset_mask": mask})
    assert observations[0].startswith("Guess")
    assert observations[1:] == ("Not a number: y", "Not a number: y")
    assert infos["_seed"].tolist() == [True, False, False]
    assert not any(envs.step(("x", "x", "x"))[2])


@pytest.mark.parametrize(
    "mask", [[True, False, False], np.array([1, 0, 0]), np.array([True]), np.zeros(3, dtype=np.bool_)]
)
def test_bad_masks(make, mask):
    envs = make(GUESS)
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_options_are_left_as_they_are(make):
    options = {"reset_mask": np.array([True, True, True]), "hint": True}
    observations, infos = make(GUESS).reset(seed=0, options=options)
    assert set(options) == {"reset_mask", "hint"}
    assert all("Hint: It is" in observation for observation in observations)
    assert all(hint.startswith("It is") for hint in infos["hint"])


def test_many_records(make):
    envs = make([GUESS, WALK], num_envs=5)
    observations, _ = envs.reset(seed=0)
    assert ["Guess" in observation for observation in observations] == [True, False, True, False, True]
    observations, rewards, *_ = envs.step(("x", "right", "x", "right", "x"))
    assert rewards.tolist()[::2] == [0.0, 0.0, 0.0]
    assert observations in envs.observation_space
    assert len(make([GUESS, WALK], num_envs=None).reset(seed=0)[0]) == 2


def test_workers_change_nothing_but_the_processes(make):
    one, three = make(GUESS, num_envs=6), make(GUESS, num_envs=6, workers=3)
    _same(one.reset(seed=3), three.reset(seed=3))
    for action in ("3", "17", "x"):
        _same(one.step((action,) * 6), three.step((action,) * 6))


def test_a_stuck_program_truncates_and_the_rest_goes_on(make):
    envs = make(FAULTY, num_envs=3, workers=3)
    envs.reset(seed=0)
    observations, rewards, terminations, truncations, infos = envs.step(("a", "hang", "c"))
    assert observations == ("you said a", "", "you said c")
    assert rewards.tolist() == [0.0, 0.0, 0.0]
    assert terminations.tolist() == [False, False, False]
    assert truncations.tolist() == [False, True, False]
    assert infos["error"][1].startswith("timeout: ")
    assert infos["_error"].tolist() == [False, True, False]
    envs.reset(seed=1, options={"reset_mask": np.array([False, True, False])})
    assert envs.step(("a", "b", "c"))[0] == ("you said a", "you said b", "you said c")


def test_quarantine_is_said_at_reset(make):
    envs = make(FAULTY, num_envs=1)
    for _ in range(2):
        envs.reset(seed=0)
        envs.step(("hang",))
    with pytest.raises(ProgramQuarantined):
        envs.reset(seed=0)


def test_reset_raises_what_a_program_raises(make):
    envs = make(FAULTY)
    with pytest.raises(ProgramRaised, match="no such start"):
        envs.reset(seed=[1, 666, 2])
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(("a", "b", "c"))
    assert envs.reset(seed=1)[0][0].startswith("Say")


def test_turn_limit(make):
    envs = make(FAULTY, num_envs=2, max_turns=2)
    envs.reset(seed=0)
    assert envs.step(("a", "b"))[3].tolist() == [False, False]
    assert envs.step(("a", "b"))[3].tolist() == [True, True]


def test_what_is_refused(make):
    envs = make(GUESS)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(("a", "b", "c"))
    envs.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction, match="expected 3 actions"):
        envs.step(("a", "b"))
    with pytest.raises(gymnasium.error.InvalidAction, match="type str"):
        envs.step(("a", 3, "c"))
    with pytest.raises(ValueError, match="one seed for each"):
        envs.reset(seed=[1, 2])
    for arguments in ({"num_envs": 0}, {"workers": 0}, {"render_mode": "human"}, {"autoreset_mode": "never"}):
        with pytest.raises(ValueError):
            make(GUESS, **arguments)


def test_render(make):
    envs = make(GUESS, num_envs=2, render_mode="ansi")
    observations, _ = envs.reset(seed=0)
    assert envs.render() == observations
    envs.step(("x", "y"))
    assert envs.render()[1] == "> y\nNot a number: y\n[reward 0]"
    assert make(GUESS).render() is None


def test_wrappers_of_gymnasium_work(make):
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make(WALK, num_envs=2))
    envs.reset(seed=0)
    dones, returns = np.zeros(2, dtype=np.bool_), []
    while not dones.all():
        _, _, terminations, _, infos = envs.step(tuple(None if done else "right" for done in dones))
        returns += [infos["episode"]["r"][i] for i in np.flatnonzero(terminations & ~dones)]
        dones = terminations
    assert len(returns) == 2
    assert min(returns) >= 1.0

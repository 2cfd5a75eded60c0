import json
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_differing_spaces, batch_space, concatenate, create_empty_array, iterate
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.spaces import PRINTABLE, UnicodeText

ANY_TEXT = st.text(alphabet=st.characters(), max_size=50)


@given(ANY_TEXT)
def test_every_character_is_accepted(text):
    assert text in UnicodeText(50)
    assert np.str_(text) in UnicodeText(50)


def test_bounds_count():
    space = UnicodeText(3, min_length=2)
    assert [text in space for text in ("", "a", "ab", "abc", "abcd")] == [False, False, True, True, False]
    assert 3 not in space
    assert None not in space
    with pytest.raises(ValueError):
        UnicodeText(1, min_length=2)


@given(ANY_TEXT, st.integers(0, 5), st.integers(5, 20))
def test_clipped_texts_are_members(text, shortest, longest):
    space = UnicodeText(longest, min_length=shortest)
    assert space.clip(text) in space
    if text in space:
        assert space.clip(text) == text


def test_samples_are_printable_members_and_follow_the_seed():
    space = UnicodeText(10**6, min_length=3, seed=5)
    samples = [space.sample() for _ in range(50)]
    assert all(sample in space and set(sample) <= set(PRINTABLE) for sample in samples)
    assert len(set(samples)) > 40
    space.seed(5)
    assert [space.sample() for _ in range(50)] == samples
    assert len(UnicodeText(200, min_length=150).sample()) >= 150


def test_sample_takes_masks():
    mask = np.zeros(len(PRINTABLE), dtype=np.int8)
    mask[PRINTABLE.index("x")] = 1
    assert UnicodeText(9).sample(mask=(4, mask)) == "xxxx"


def test_repr_is_short_and_equality_is_by_bounds():
    assert repr(UnicodeText(100)) == "UnicodeText(0, 100)"
    assert UnicodeText(100) == UnicodeText(100)
    assert UnicodeText(100) != UnicodeText(101)
    assert UnicodeText(100) != spaces.Text(100, min_length=0, charset=PRINTABLE)
    assert spaces.Text(100, min_length=0, charset=PRINTABLE) != UnicodeText(100)


def test_pickles_with_its_generator():
    space = UnicodeText(30, seed=3)
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space
    assert copy.sample() == space.sample()


@given(st.lists(ANY_TEXT, max_size=4))
def test_json_round_trip(texts):
    space = UnicodeText(50)
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(texts)))) == texts


@given(ANY_TEXT)
def test_flatten_round_trip(text):
    space = UnicodeText(60)
    flat = spaces.flatten(space, text)
    assert flat in spaces.flatten_space(space)
    assert flat.shape == (spaces.flatdim(space),)
    assert spaces.unflatten(space, flat) == text


def test_batching():
    space = UnicodeText(40, seed=1)
    batch = batch_space(space, 3)
    assert isinstance(batch, spaces.Tuple)
    assert batch.sample() in batch
    assert len(set(batch.sample())) > 1
    texts = ("a", "数", "")
    assert tuple(iterate(batch, texts)) == texts
    assert concatenate(space, texts, create_empty_array(space, 3)) == texts
    assert create_empty_array(space, 3) in batch
    differing = batch_differing_spaces([UnicodeText(1), UnicodeText(5)])
    assert ("a", "abcde") in differing
    assert ("ab", "abcde") not in differing
    assert spaces.utils.is_space_dtype_shape_equiv(space, UnicodeText(40))


class Echo(gymnasium.Env):
    """Says what it hears."""

    observation_space = UnicodeText(200)
    action_space = UnicodeText(200)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return "¿Qué?", {}

    def step(self, action):
        return action, 0.0, False, False, {}


@pytest.mark.parametrize("shared_memory", [True, False])
def test_asynchronous_environments_return_the_latest_texts(shared_memory):
    envs = gymnasium.vector.AsyncVectorEnv([Echo, Echo], shared_memory=shared_memory)
    try:
        first, _ = envs.reset(seed=1)
        assert first == ("¿Qué?", "¿Qué?")
        second = envs.step(("数\0", ""))[0]
        assert second == ("数\0", "")
        assert second in envs.observation_space
        assert envs.step(("b" * 200, "\U0001f600"))[0] == ("b" * 200, "\U0001f600")
        assert first == ("¿Qué?", "¿Qué?")
    finally:
        envs.close()

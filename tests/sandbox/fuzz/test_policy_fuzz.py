"""What the policy lets through reaches nothing forbidden, whatever it does when it runs; and the fuzzer can fail."""

import pytest
from attack_grammar import Grammar
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_fuzz import Harness, hunt
from weakenings import WEAKENINGS

FOUND_WITHIN = 400


@pytest.fixture(scope="module")
def harness():
    with Harness() as started:
        yield started


@settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(st.lists(st.randoms(use_true_random=False), min_size=1, max_size=12))
def test_programs_reach_nothing(harness, randoms):
    programs = [Grammar(random).program(6) for random in randoms]
    found = [(wrong, program) for program, wrong in zip(programs, harness.run(programs)) if wrong]
    assert not found


def test_programs_with_numpy_reach_nothing():
    assert hunt(None, seed=1, budget=100, numpy=True) is None


@pytest.mark.parametrize("weakening", WEAKENINGS)
def test_planted_holes_are_found(weakening):
    # Three draws: which one comes upon a rare hole changes with every name that is added to the grammar.
    assert any(hunt(weakening, seed=seed, budget=FOUND_WITHIN) is not None for seed in range(3))

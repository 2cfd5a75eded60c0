"""Sketches against the exact overlap of multisets of runs."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_programs import AUCTION, MAZE, PLAIN, renamed

from spade_envs.memory import lexical, signature

_TOKENS = st.lists(st.sampled_from(["a", "b", "(", ")", "if"]), max_size=60)


def _counted(tokens: list[str]) -> dict[tuple[str, ...], int]:
    runs: dict[tuple[str, ...], int] = {}
    for start in range(max(1, len(tokens) - lexical.SHINGLE + 1)):
        run = tuple(tokens[start : start + lexical.SHINGLE])
        runs[run] = runs.get(run, 0) + 1
    return runs


def _jaccard(one: list[str], other: list[str]) -> float:
    a, b = _counted(one), _counted(other)
    both = sum(min(a.get(run, 0), b.get(run, 0)) for run in a | b)
    return both / (sum(a.values()) + sum(b.values()) - both)


@given(_TOKENS, st.lists(_TOKENS, max_size=4))
@settings(max_examples=200, deadline=None)
def test_sketches_of_short_programs_are_exact(one: list[str], others: list[list[str]]) -> None:
    mine = signature.elements(one)
    theirs = [signature.elements(other) for other in others]
    expected = [_jaccard(one, other) for other in others]
    assert [signature.overlap(mine, other) for other in theirs] == pytest.approx(expected)
    sketches = [signature.sketch(other) for other in theirs]
    assert signature.overlaps(signature.sketch(mine), sketches) == pytest.approx(expected)
    assert all(signature.is_exact(signature.sketch(mine), sketch) for sketch in sketches)


def test_sketches_of_long_programs_estimate_within_the_margin() -> None:
    rng = random.Random(0)
    words = [str(number) for number in range(300)]
    for _ in range(40):
        one = rng.choices(words, k=rng.randint(400, 3000))
        other = [rng.choice(words) if rng.random() < 0.04 else token for token in one]
        a, b = signature.elements(one), signature.elements(other)
        exact = signature.overlap(a, b)
        assert exact == pytest.approx(_jaccard(one, other))
        estimate = signature.overlaps(signature.sketch(a), [signature.sketch(b)])[0]
        assert not signature.is_exact(signature.sketch(a), signature.sketch(b))
        assert abs(estimate - exact) < signature.MARGIN + 0.02


def test_a_long_and_a_short_program_are_compared_where_both_are_known() -> None:
    long = signature.elements([str(number) for number in range(5000)])
    short = signature.elements([str(number) for number in range(100)])
    estimate = signature.overlaps(signature.sketch(short), [signature.sketch(long)])[0]
    assert estimate == pytest.approx(97 / 4997, abs=0.03)


def test_elements_agree_with_counted_shingles() -> None:
    for other in (renamed(MAZE), AUCTION, PLAIN, MAZE + MAZE):
        exact = lexical.overlap(lexical.shingles(MAZE), lexical.shingles(other))
        one, two = (signature.sign(source).plain for source in (MAZE, other))
        assert signature.overlap(one, two) == pytest.approx(exact)


def test_signatures_are_the_same_in_every_process() -> None:
    code = (
        "import sys; from spade_envs.memory import signature; s = signature.sign(sys.argv[1]);"
        "print(s.fingerprint, s.literal_fingerprint, signature.to_bytes(signature.sketch(s.literal)).hex())"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", code, PLAIN], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    one = signature.sign(PLAIN)
    sketch = signature.sketch(one.literal)
    assert outputs == {f"{one.fingerprint} {one.literal_fingerprint} {signature.to_bytes(sketch).hex()}\n"}
    assert signature.from_bytes(signature.to_bytes(sketch)).tolist() == sketch.tolist()
    assert one.fingerprint == lexical.fingerprint(PLAIN)

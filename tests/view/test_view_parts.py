"""Small parts: plots, queries, forms of tools, statistics, the overview of a memory."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_programs import BOXED, GUESS, record
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.memory.overview import Overview, plays_of
from spade_envs.memory.transfer import Play
from spade_envs.record import PlayStatistics
from spade_envs.view.environment_pages import statistics
from spade_envs.view.listing import Query
from spade_envs.view.projection import project
from spade_envs.view.svg import Line, line_plot, running_mean, thinned, ticks
from spade_envs.view.texts import number, shown
from spade_envs.view.tool_forms import FormError, action, forms
from spade_envs.view.twins import side_by_side

FINITE = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=30), st.text(max_size=30))
def test_a_plot_of_anything_is_well_formed(points, label):
    from xml.etree import ElementTree

    text = str(line_plot(label.encode("utf-8", "replace").decode(), [Line("a", sorted(points, key=str))]))
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text)  # the template's filter makes them visible
    ElementTree.fromstring(text)
    assert "nan" not in text.replace(label, "").lower() or "nothing to draw" in text


@given(FINITE, st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low, width):
    found = ticks(low, low + width, 6)
    assert len(found) <= 7
    assert all(low - 1e-6 * max(1, abs(low)) - width * 1e-6 <= one for one in found)
    assert all(one <= (low + width) + 1e-6 * max(1, abs(low), width) for one in found)


@given(st.lists(FINITE, min_size=1, max_size=50), st.integers(1, 9))
def test_running_mean(values, width):
    for index, mean in enumerate(running_mean(values, width)):
        window = values[max(0, index - width + 1) : index + 1]
        assert mean == pytest.approx(sum(window) / len(window), abs=1e-6 * (1 + max(map(abs, values))))


def test_long_lines_are_averaged():
    points = [(float(x), float(x % 2)) for x in range(10_000)]
    found = thinned(points, 300)
    assert len(found) <= 300
    assert sum(y for _, y in found) / len(found) == pytest.approx(0.5, abs=0.01)


@given(st.dictionaries(st.sampled_from([*Query.__dataclass_fields__, "x"]), st.text(max_size=12)))
def test_a_query_and_its_address_say_the_same(values):
    from urllib.parse import parse_qsl

    query = Query.of(values)
    assert query.page >= 1
    assert Query.of(dict(parse_qsl(query.address()))) == query


@given(st.text(max_size=200))
def test_shown_text_has_no_control_characters(text):
    assert all(ch in "\n\t" or ch.isprintable() for ch in shown(text))


def test_figures_for_people():
    assert [number(value) for value in (None, "x", True, math.nan, -0.5, 1e9)] == ["–"] * 4 + ["−0.50", "1e+09"]


WORDS = ("type", "function", "name", "parameters", "properties", "required", "enum", "a")
SCHEMAS = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner),
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), SCHEMAS))
def test_schemas_of_any_form_give_forms(schema):
    for form in forms([schema, {"type": "function", "function": {"name": "f", "parameters": schema}}]):
        try:
            text = action(form, dict.fromkeys(map(str, range(9)), "1"))
        except FormError:
            continue
        call = json.loads(text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
        assert call["name"] == form.name


def test_statistics_have_intervals():
    found = statistics(PlayStatistics(8, 4.0, 4, 8, 8.0, 8), [])
    assert found["plain"]["win_rate"] == pytest.approx((0.5, 0.2152, 0.7848), abs=1e-4)
    value, low, high = found["regret"]
    assert value == 0.5
    assert 0 < low < value < high <= 1
    with_losses = statistics(PlayStatistics(2, -1.0, 0, 0, 0.0, 0), [Play(False, -1.0, "", 0)])
    assert with_losses["plain"]["return"][1] >= -1
    assert with_losses["regret"] is None
    assert statistics(PlayStatistics(), [])["plain"] is None


def test_projection_is_repeatable_and_needs_few_points():
    import numpy as np

    vectors = np.random.default_rng(0).normal(size=(50, 16)).astype(np.float32)
    points, share = project(vectors)
    assert points.shape == (50, 2)
    assert 0 < share < 1
    assert np.array_equal(points, project(vectors)[0])
    assert project(vectors[:1])[0].shape == (1, 2)
    assert project(vectors[:0])[0].shape == (0, 2)
    assert project(np.ones((5, 4), dtype=np.float32))[1] == 0.0


def test_side_by_side_holds_both_texts():
    one, other = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj", "a\nb\nc\nd\ne\nf\ng\nh\nX\nj\nk"
    lines = side_by_side(one, other)
    assert [line.kind for line in lines] == ["same"] * 3 + ["skipped"] + ["same"] * 3 + ["changed", "same", "added"]
    changed = next(line for line in lines if line.kind == "changed")
    assert (changed.left_number, changed.left, changed.right) == (9, "i", "X")


def test_the_overview_follows_the_database(tmp_path):
    with Memory.open(tmp_path / "m", embedder=HashedTokenEmbedder()) as memory:
        overview = Overview(memory)
        assert overview.entries() == ()
        boxed, guess = record(BOXED), record(GUESS, parents=(record(BOXED).id,), created_at=5.0)
        memory.add(boxed, run="a")
        position = memory.position()
        memory.add(guess, run="b")
        memory.record_plays(boxed.id, [1.0, 0.0], hinted=False, run="b", step=3)
        entries = overview.entries()
        assert [(entry.name, entry.statistics.plain_plays) for entry in entries] == [("BoxedEnv", 2), ("GuessEnv", 0)]
        assert overview.entries() is entries  # nobody wrote
        assert [entry.id for entry in overview.children(boxed.id)] == [guess.id]
        assert plays_of(memory, boxed.id) == [Play(False, 1.0, "b", 3), Play(False, 0.0, "b", 3)]
        memory.rollback("b", position)
        assert [(entry.name, entry.statistics.plain_plays) for entry in overview.entries()] == [("BoxedEnv", 0)]
        assert overview.children(boxed.id) == []
        memory.evict(0)
        assert [entry.archived for entry in overview.entries()] == [True]
        memory.compact(drop_archived=True)
        assert overview.entries() == ()

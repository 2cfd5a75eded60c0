"""Tables, comparisons, curves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.scripted_models import RuleModel, SumSuite, noisy, right
from spade_train.evaluation.compare import compare_results, comparison_dict
from spade_train.evaluation.curve import draw, improvements
from spade_train.evaluation.evaluate import evaluate
from spade_train.evaluation.protocol import EvaluationError, published_means, published_protocol
from spade_train.evaluation.results import Column, Result
from spade_train.evaluation.tables import MEASURED, PUBLISHED, ResultTable, sources


def _result(model: str = "ours_1", suite: str = "aime-2025", **facts: object) -> Result:
    protocol = published_protocol(suite)
    columns = tuple(Column(group, title, 0.25, (0.1, 0.4), 30) for group, title in protocol.columns.items())
    return Result(
        suite,
        protocol.title,
        model,
        columns,
        30,
        32,
        metric=protocol.metric,
        scores={"q": 0.25},
        **{"limit": 0, **facts},
    )  # type: ignore[arg-type]


def test_ours_and_published_figures_never_share_a_row() -> None:
    table = ResultTable([_result(), _result(suite="gpqa-diamond"), _result("other")])
    rows = table.rows()
    assert [row[1] for row in rows] == [MEASURED, MEASURED, PUBLISHED]
    assert rows[0][2:4] == ["25.0 (10.0–40.0)", "25.0 (10.0–40.0)"]
    assert rows[2][2:4] == ["+1.3 over its base", "+5.4 over its base"]
    assert not [row for row in ResultTable([_result()], published=False).rows() if row[1] == PUBLISHED]


def test_every_published_figure_names_a_source_and_a_column_of_its_suite() -> None:
    known = sources()
    suites = ("reasoning-gym", "aime-2025", "aime-2026", "gpqa-diamond", "livecodebench-v6", "bfcl-v4", "acebench")
    for suite in (*suites, "tau2-bench"):
        protocol = published_protocol(suite)
        assert protocol.notes
        for figure in protocol.published:
            assert figure.source in known
            assert figure.column in protocol.columns.values()
    assert all(figure.source in known for figure in published_means())


def test_a_limited_run_is_marked_in_every_form_of_the_table() -> None:
    table = ResultTable([_result(limit=5)])
    for text in (table.markdown(), table.latex(), json.dumps(table.to_dict())):
        assert "limit 5: smoke run, not comparable" in text


def test_markdown_has_as_many_cells_in_every_line_and_latex_is_escaped() -> None:
    table = ResultTable([_result("a|b_c")])
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert r"a|b\_c & measured here" in table.latex()
    assert table.latex().count(r"\\") == 1 + len(table.rows())


def test_two_runs_are_compared_question_by_question(tmp_path: Path) -> None:
    suite = SumSuite(samples=1)
    one = evaluate(suite, lambda: RuleModel(noisy), "base@1", tmp_path)[0]
    two = evaluate(suite, lambda: RuleModel(right), "trained@1", tmp_path)[0]
    facts = comparison_dict(one, two, compare_results(one, two))
    assert facts["questions"] == 10
    assert facts["difference"] == pytest.approx(two.scores and 1.0 - sum(one.scores.values()) / 10)
    assert "trained" in facts["verdict"]


def test_runs_by_another_protocol_cannot_be_compared(tmp_path: Path) -> None:
    one = evaluate(SumSuite(), lambda: RuleModel(right), "a@1", tmp_path)[0]
    two = evaluate(SumSuite(max_tokens=5), lambda: RuleModel(right), "a@1", tmp_path)[0]
    with pytest.raises(EvaluationError, match="protocol_hash"):
        compare_results(one, two)


def test_a_curve_is_relative_to_the_first_evaluation(tmp_path: Path) -> None:
    rows = [{"step": 0, "heldout/success": 0.2}, {"step": 1}, {"step": 5, "heldout/success": 0.3}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 6, "hel')
    points = improvements(tmp_path, "heldout/success")
    assert points == [(0, 0.0), (5, pytest.approx(50.0))]
    draw({"run": points}, tmp_path / "figure.svg", "heldout/success")
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")
    with pytest.raises(EvaluationError, match="has no 'other'"):
        improvements(tmp_path, "other")

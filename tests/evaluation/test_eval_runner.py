"""Running a suite: units, resumption, cache, errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluation.scripted_models import RuleModel, SumSuite, noisy, right
from spade_envs.models.base import Completion, Conversation, ModelError, Sampling
from spade_envs.models.usage import Prices
from spade_train.evaluation.evaluate import evaluate
from spade_train.evaluation.journal import AnswerJournal
from spade_train.evaluation.question import Answer
from spade_train.evaluation.results import GENERATIONS_FILE, JOURNAL_FILE, Result
from spade_train.evaluation.runner import RunSettings

SETTINGS = RunSettings(batch=4)


def _run(output: Path, model: RuleModel, suite: SumSuite | None = None, **options: object) -> tuple[Result, Path, int]:
    return evaluate(suite or SumSuite(), lambda: model, "rule@1", output, settings=SETTINGS, **options)  # type: ignore[arg-type]


def test_a_right_answerer_scores_all_and_an_empty_one_nothing(tmp_path: Path) -> None:
    result, folder, asked = _run(tmp_path / "a", RuleModel(right))
    assert (result.score, asked, result.questions) == (1.0, 20, 10)
    assert [column.title for column in result.columns] == ["small", "large"]
    assert pq.read_table(folder / GENERATIONS_FILE).num_rows == 20
    assert _run(tmp_path / "b", RuleModel(lambda *_: ""))[0].score == 0.0


def test_a_finished_run_asks_nothing_and_loads_no_model(tmp_path: Path) -> None:
    first, _, _ = _run(tmp_path, RuleModel(noisy))

    def refuse() -> RuleModel:
        raise AssertionError("the model is not needed")

    again, _, asked = evaluate(SumSuite(), refuse, "rule@1", tmp_path, settings=SETTINGS)
    assert asked == 0
    assert again == first


def test_another_protocol_model_limit_or_seed_is_another_run(tmp_path: Path) -> None:
    folders = {
        _run(tmp_path, RuleModel(right))[1],
        _run(tmp_path, RuleModel(right), SumSuite(temperature=0.5))[1],
        _run(tmp_path, RuleModel(right), limit=4)[1],
        evaluate(SumSuite(), lambda: RuleModel(right), "rule@2", tmp_path, settings=SETTINGS)[1],
        evaluate(SumSuite(), lambda: RuleModel(right), "rule@1", tmp_path, settings=RunSettings(seed=1))[1],
    }
    assert len(folders) == 5


@pytest.mark.parametrize("answered", [1, 4, 11, 19])
def test_a_run_that_stopped_goes_on_to_the_same_result(tmp_path: Path, answered: int) -> None:
    whole, _, _ = _run(tmp_path / "whole", RuleModel(noisy))
    first = RuleModel(noisy, last=answered)
    with pytest.raises(ModelError):
        _run(tmp_path / "cut", first)
    second = RuleModel(noisy)
    result, _, _ = _run(tmp_path / "cut", second)
    assert len(first.asked) + len(second.asked) == 20  # two samples of ten questions, none a third time
    assert result.scores == whole.scores
    assert result.columns == whole.columns


def test_a_half_written_unit_is_as_if_it_had_not_been_asked(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL_FILE
    journal = AnswerJournal(path)
    journal.put([Answer("a", 0, "", 1.0)])
    journal.put([Answer("b", 0, "", 1.0), Answer("c", 0, "", 0.0)])
    journal.close()
    path.write_bytes(path.read_bytes()[:-9])
    again = AnswerJournal(path)
    assert set(again.answers) == {("a", 0)}
    again.put([Answer("b", 0, "", 0.0)])
    again.close()
    assert set(AnswerJournal(path).answers) == {("a", 0), ("b", 0)}


def test_two_processes_do_not_share_a_journal(tmp_path: Path) -> None:
    held = AnswerJournal(tmp_path / JOURNAL_FILE)
    with pytest.raises(OSError, match="in use by another evaluation"):
        AnswerJournal(tmp_path / JOURNAL_FILE)
    held.close()


def test_what_got_no_answer_counts_as_wrong_and_is_asked_again(tmp_path: Path) -> None:
    silent = RuleModel(lambda text, _: "!" if text == "3+3" else right(text, 0))
    result, _, _ = _run(tmp_path, silent)
    assert result.errors == 2
    assert result.score == pytest.approx(0.9)
    assert "2 answers missing" in result.marks
    mended = RuleModel(right)
    result, _, asked = _run(tmp_path, mended)
    assert mended.asked == ["3+3", "3+3"]
    assert (result.score, result.errors, asked) == (1.0, 0, 2)


def test_what_can_never_be_answered_is_wrong_and_not_asked_again(tmp_path: Path) -> None:
    long = RuleModel(lambda text, _: "?" if text == "3+3" else right(text, 0))
    result, _, _ = _run(tmp_path, long)
    assert (result.errors, result.refused, result.score) == (0, 2, pytest.approx(0.9))
    assert "2 prompts refused (too long?)" in result.marks
    assert _run(tmp_path, RuleModel(right))[2] == 0


def test_limits_overrides_and_costs_are_told(tmp_path: Path) -> None:
    result, folder, _ = _run(tmp_path, RuleModel(right), limit=3, as_published=False, prices=Prices(1e6, 0.0))
    assert result.marks == ["limit 3: smoke run, not comparable", "protocol changed"]
    assert result.cost == pytest.approx(3 * 6)
    written = json.loads((folder / "result.json").read_text())
    assert written["marks"] == result.marks
    assert Result.load(folder) == result


def test_the_progress_ends_at_the_total_and_tells_the_time_left(tmp_path: Path) -> None:
    notices: list[tuple[int, int, str]] = []
    _run(tmp_path, RuleModel(right), notice=lambda *facts: notices.append(facts))
    assert notices[0][:2] == (0, 20)
    assert notices[-1] == (20, 20, "100.0 %")
    assert notices[2][2].endswith("left")


def test_a_batch_in_this_process_says_how_far_it_is(tmp_path: Path) -> None:
    class Slow(RuleModel):
        on_tokens: Callable[[int, int, int], None] | None = None

        def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
            assert self.on_tokens is not None
            self.on_tokens(1280, 7595, 2)
            return super().complete(conversations, sampling)

    said: list[tuple[int, int, str]] = []
    evaluate(
        SumSuite(samples=1),
        lambda: Slow(right),
        "slow@1",
        tmp_path,
        settings=RunSettings(batch=5),
        notice=lambda *facts: said.append(facts),
    )
    words = [text for done, total, text in said if "under way" in text]
    assert words[0] == "2 replies under way, 1,280 of at most 7,595 tokens"
    assert words[1].startswith("100.0 %, ")

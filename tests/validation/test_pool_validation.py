"""Pools: order, several at once, going on after a kill, and memory that does not grow."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import cast

import pytest
from test_contradiction import LARGEST, SMALLEST, program

from spade_envs.sandbox import SandboxError
from spade_envs.validation import ValidationConfig, count_sources, find_source, iter_sources
from spade_envs.validation.lanes import Task, validate_in_order
from spade_envs.validation.pool import Verdict, validate_pool
from spade_envs.validation.report_log import ReportLog, configuration_key
from spade_envs.validation.tally import Tally

QUICK = ValidationConfig(seeds=(0, 1), play_seeds=1, contentless_seeds=1, cross_process=False)
SOURCES = [
    *(program("largest", f"max(self.numbers) + {number}") for number in range(3)),
    "import os\n",
    program("total", "sum(self.numbers)"),
]
POOL = [(str(number), source) for number, source in enumerate(SOURCES)]


def run(pool: list[tuple[str, str]], jobs: int = 1, log: ReportLog | None = None) -> Iterator[Verdict]:
    return validate_pool(pool, find=dict(pool).__getitem__, jobs=jobs, config=QUICK, log=log)


def open_log(path: Path, config: ValidationConfig = QUICK, *, resume: bool = True) -> ReportLog:
    return ReportLog(path, configuration_key(config, ()), resume=resume)


def test_several_at_once_report_the_same_in_the_same_order() -> None:
    def told(jobs: int) -> list[tuple[str, bool, list[str]]]:
        verdicts = run(POOL, jobs)
        return [(v.label, v.report.admitted, [f.reason for f in v.report.findings]) for v in verdicts]

    one = told(1)
    assert [label for label, _, _ in one] == ["0", "1", "2", "3", "4"]
    assert [admitted for _, admitted, _ in one] == [True, True, True, False, True]
    assert told(2) == one


def test_contradictions_are_found_across_the_pool() -> None:
    verdicts = list(run([("a", LARGEST), ("b", SMALLEST), ("c", program("total", "sum(self.numbers)"))], jobs=2))
    assert [len(verdict.contradictions) for verdict in verdicts] == [0, 1, 0]
    assert verdicts[1].contradictions[0].evidence["other"] == "a"


def test_contradictions_are_not_tried_again_when_a_run_goes_on(tmp_path: Path) -> None:
    pool = [("a", LARGEST), ("b", SMALLEST)]
    with open_log(tmp_path / "reports.jsonl") as log:
        first = list(run(pool, log=log))
    with open_log(tmp_path / "reports.jsonl") as log:  # nothing is looked up, so nothing can be run
        again = list(validate_pool(pool, find={}.__getitem__, config=QUICK, log=log))
    assert [verdict.report for verdict in again] == [verdict.report for verdict in first]
    assert len(again[1].contradictions) == 1


def test_sources_are_read_as_they_are_needed() -> None:
    read = []

    def sources() -> Iterator[tuple[str, str]]:
        for number in range(1_000_000):
            read.append(number)
            yield str(number), "import os\n"

    verdicts = validate_pool(sources(), find=str, jobs=2, config=QUICK)
    next(verdicts)
    verdicts.close()
    assert len(read) < 100


def test_a_killed_run_goes_on_without_repeating(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    with open_log(path) as log:
        verdicts = run(POOL, log=log)
        first = [next(verdicts) for _ in range(2)]
        verdicts.close()
    with path.open("ab") as file:
        file.write(b'{"label": "2", "id": "to')  # killed while writing
    with open_log(path) as log:
        assert len(log) == 2
        again = list(run(POOL, log=log))
    assert [verdict.resumed for verdict in again] == [True, True, False, False, False]
    assert [verdict.report for verdict in again[:2]] == [verdict.report for verdict in first]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["label"] for line in lines] == ["0", "1", "2", "3", "4"]
    assert not lines[3]["admitted"]


def test_another_configuration_is_another_report(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    with open_log(path) as log:
        list(run(POOL[:1], log=log))
    with open_log(path, ValidationConfig()) as log:
        assert log.find(SOURCES[0]) is None
    with open_log(path) as log:
        assert log.find(SOURCES[0]) is not None


def test_a_program_that_stands_twice_is_run_once_and_has_two_lines(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    with open_log(path) as log:
        verdicts = list(run([("a", LARGEST), ("b", LARGEST)], log=log))
    assert [verdict.resumed for verdict in verdicts] == [False, True]
    assert [json.loads(line)["label"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_a_log_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    path.write_text("notes\n")
    with pytest.raises(FileExistsError, match="--resume"):
        open_log(path, resume=False)
    with pytest.raises(ValueError, match="line 1"):
        open_log(path)
    assert path.read_text() == "notes\n"


def _in_lanes(work: Iterable[tuple[int, Task | None]]) -> list[object]:
    return list(validate_in_order(work, jobs=2, isolation="full", allow=(), config=QUICK))


def test_what_fails_in_a_lane_is_named() -> None:
    with pytest.raises(SandboxError, match=r"validating failed with AttributeError: .*encode"):
        _in_lanes([(0, cast(Task, (5, None)))])


def test_a_lane_that_is_killed_is_told_by_its_signal() -> None:
    def work() -> Iterator[tuple[int, Task | None]]:
        yield 0, (SOURCES[0], None)
        for child in active_children():
            os.kill(child.pid or 0, signal.SIGKILL)
        yield 1, (SOURCES[1], None)

    with pytest.raises(SandboxError, match="ended by signal 9; is the machine out of memory"):
        _in_lanes(work())


def test_no_lanes_are_no_jobs() -> None:
    with pytest.raises(ValueError, match="jobs"):
        list(run(POOL, jobs=0))


def test_the_table_counts_each_program_once() -> None:
    tally = Tally()
    for verdict in run(POOL[2:]):
        tally.add(verdict.label, verdict.report)
    assert tally.summary() == "2 admitted, 1 refused (policy 1)"
    assert any(line.split()[:2] == ["policy", "1"] and line.endswith(" 3") for line in tally.table().splitlines())
    assert Tally().table() == ""


def test_sources_are_found_again_by_their_labels(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.jsonl").write_text('{"code": "y"}\n\n{"code": "z"}\n')
    pairs = list(iter_sources([tmp_path]))
    assert len(pairs) == 3
    assert [find_source(label) for label, _ in pairs] == [source for _, source in pairs]
    assert count_sources([tmp_path]) is None
    assert count_sources([tmp_path / "a.py"]) == 1
    with pytest.raises(KeyError):
        find_source(f"{tmp_path / 'b.jsonl'}:2")

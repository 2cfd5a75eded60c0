"""Each alarm: a history that raises it, and one near it that does not."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spade_train.alarm_rules import RULES
from spade_train.alarms import Alarm, History, alarms
from spade_train.callbacks import ALARMS_FILE, AlarmsCallback, EarlyStopCallback, collapsed, read_alarms
from spade_train.callbacks.watch import REPEAT_AFTER

Lines = list[dict[str, Any]]

HEALTHY = {
    "reward": 0.0, "design/valid": 0.9, "design/admitted": 0.7, "design/duplicate": 0.2, "design/cut": 0.0,
    "diversity/ideas": 6.0, "environment/regret": 0.3, "environment/password": 0.1, "hint/answer": 0.1,
    "advantage/designer_zero_share": 0.2, "advantage/agent_zero_share": 0.4, "stop/terminated": 80.0,
    "stop/token_budget": 3.0, "stop/context_limit": 2.0, "kl": 0.01, "entropy": 0.8, "sandbox/isolation": 1.0,
    "sandbox/died": 0.0, "sandbox/timeout": 0.01, "sandbox/quarantined": 0.0, "step_time": 4.0,
    "tokens/designer": 1000.0, "tokens/agent": 3000.0,
}  # fmt: skip


def history(count: int = 10, before: int = 0, **changes: Any) -> Lines:
    """``before`` healthy lines, then ``count`` changed ones; two underscores in a name stand for a slash."""
    renamed = {name.replace("__", "/"): value for name, value in changes.items()}
    lines = [dict(HEALTHY) for _ in range(before)]
    lines += [HEALTHY | {n: v[i] if isinstance(v, list) else v for n, v in renamed.items()} for i in range(count)]
    return [line | {"step": step} for step, line in enumerate(lines, 1)]


def held(lines: Lines) -> set[str]:
    return {alarm.name for alarm in alarms(lines)}


SLOWER = [4.0] * 8 + [6.0] * 8 + [9.0] * 8 + [14.0] * 8

RAISED: list[tuple[str, Lines, Lines]] = [
    ("one_idea", history(diversity__ideas=1.2), history(diversity__ideas=1.7)),
    ("one_idea", history(design__duplicate=0.8), history(design__duplicate=0.55)),
    ("passwords", history(environment__password=0.6), history(environment__password=0.4)),
    (
        "passwords",
        history(hint__answer=0.7, environment__regret=0.6),
        history(hint__answer=0.7, environment__regret=0.2),
    ),
    ("invalid", history(5, before=10, design__valid=0.4), history(5, before=10, design__valid=0.5)),
    ("invalid", history(5, design__valid=0.02), history(5, design__valid=0.1)),
    (
        "silent_designer",
        history(advantage__designer_zero_share=1.0),
        history(advantage__designer_zero_share=[1.0] * 6 + [0.5] + [1.0] * 3),
    ),
    ("silent_agent", history(advantage__agent_zero_share=1.0), history(advantage__agent_zero_share=0.95)),
    ("context", history(stop__context_limit=40.0), history(stop__context_limit=20.0)),
    ("token_budget", history(stop__token_budget=40.0), history(stop__token_budget=20.0)),
    ("cut_designs", history(design__cut=0.4), history(design__cut=0.2)),
    ("kl", history(3, before=10, kl=0.8), history(3, before=10, kl=0.4)),
    ("kl", history(3, kl=20.0), history(3, kl=5.0)),
    ("kl", history(3, before=10, kl=0.8), history(13, kl=0.8)),
    ("entropy", history(5, before=10, entropy=0.05), history(5, before=10, entropy=0.2)),
    ("isolation", history(sandbox__isolation=0.5), history(sandbox__isolation=1.0)),
    ("sandbox", history(sandbox__died=0.1, sandbox__timeout=0.05), history(sandbox__died=0.05)),
    ("sandbox", history(sandbox__quarantined=0.3), history(2, before=8, sandbox__quarantined=0.1)),
    ("barren", history(design__admitted=0.0), history(design__admitted=[0.0] * 9 + [0.1])),
    ("slowing", history(32, step_time=SLOWER), history(32, step_time=[4.0] * 24 + [14.0] * 8)),
    (
        "slowing",
        history(32, step_time=SLOWER),
        history(32, step_time=SLOWER, tokens__agent=[750.0 * seconds - 1000.0 for seconds in SLOWER]),
    ),
    ("ratios", history(off_policy__truncated_share=0.4), history(off_policy__truncated_share=0.1)),
    (
        "ratios",
        history(**{"sampling/importance_sampling_ratio/mean": 0.3}),
        history(**{"sampling/importance_sampling_ratio/mean": 0.9}),
    ),
    ("not_finite", history(1, before=4, not_finite=1), history(1, before=4)),
]


@pytest.mark.parametrize(("name", "bad", "near"), RAISED, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(RAISED)])
def test_raised_and_not_raised(name: str, bad: Lines, near: Lines) -> None:
    assert held(bad) == {name}
    assert held(near) == set()


def test_every_rule_is_tested_and_documented() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {name for name, *_ in RAISED} == set(names)
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    assert not [name for name in names if f"| `{name}`" not in text]


def test_causes_name_the_figures_and_critical_comes_first() -> None:
    lines = history(design__duplicate=0.8, sandbox__isolation=0.0)
    first, second = alarms(lines)
    assert (first.name, first.severity, first.step) == ("one_idea", "critical", 10)
    assert "80%" in first.cause
    assert first.advice
    assert (second.name, second.severity) == ("isolation", "warning")
    assert "one_idea" in str(first)


def test_too_short_histories_raise_nothing() -> None:
    worst = {"diversity__ideas": 1.0, "design__valid": 0.0, "advantage__agent_zero_share": 1.0, "entropy": 0.0}
    assert alarms([]) == []
    for count in range(1, 5):
        assert held(history(count, **worst)) == set()


def test_an_old_value_does_not_count_as_the_latest() -> None:
    lines = history(5, design__cut=1.0) + [{"step": step} for step in range(6, 22)]
    assert History(lines).last("design/cut") == []
    assert len(History(lines[:-1]).last("design/cut")) == 5


def test_programs_that_are_written_every_eighth_cycle_are_watched() -> None:
    lines = [line if line["step"] % 8 == 1 else {"step": line["step"]} for line in history(40, design__valid=0.0)]
    assert "invalid" in held(lines)
    assert "invalid" not in held(lines[:-8])


def _log(callback: Any, folder: Path, lines: Lines) -> Any:
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    arguments = SimpleNamespace(output_dir=str(folder), process_index=0, world_size=1)
    for line in lines:
        state = SimpleNamespace(global_step=line["step"])
        callback.on_log(arguments, state, control, logs=line)
    return control


def test_alarms_are_told_when_they_begin_and_again_after_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = history(REPEAT_AFTER + 10, before=5, diversity__ideas=1.0)
    lines += [line | {"step": line["step"] + len(lines)} for line in history(10)]
    _log(AlarmsCallback(), tmp_path, lines)
    told = read_alarms(tmp_path)
    first = next(line["step"] for line in lines if held(lines[: line["step"]]))
    assert [(alarm.name, alarm.step) for alarm in told] == [("one_idea", first), ("one_idea", first + REPEAT_AFTER)]
    assert "resemble each other" in caplog.text


def test_a_resumed_run_tells_what_an_unbroken_one_does(tmp_path: Path) -> None:
    lines = history(REPEAT_AFTER + 20, before=5, diversity__ideas=1.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    _log(AlarmsCallback(), whole, lines)
    _log(AlarmsCallback(), broken, lines[:18])
    (broken / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:18]))
    for step in (8, 15):  # before the alarm began, and while it holds
        resumed = AlarmsCallback()
        arguments = SimpleNamespace(output_dir=str(broken), process_index=0)
        resumed.on_train_begin(arguments, SimpleNamespace(global_step=step), None)
        _log(resumed, broken, lines[step:])
    assert (broken / ALARMS_FILE).read_text() == (whole / ALARMS_FILE).read_text() != ""


def test_early_stop_needs_patience() -> None:
    thresholds = {"regret": 0.05, "validity": 0.3}
    assert collapsed(history(9, environment__regret=0.01), thresholds, 10) == ""
    assert "mean regret: below 0.05 for 10 cycles" in collapsed(history(10, environment__regret=0.01), thresholds, 10)
    once_well = history(10, environment__regret=[0.01] * 5 + [0.2] + [0.01] * 4)
    assert collapsed(once_well, thresholds, 10) == ""


def test_a_run_that_was_stopped_early_and_is_resumed_has_its_patience_anew(tmp_path: Path) -> None:
    """However often it is killed on its way."""
    lines = history(20, environment__regret=[0.2] * 2 + [0.01] * 18)
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stops = []
    for begin in (0, 4, 7, 9, 12, 15):  # of which 7, 12 and 17 are where it was stopped
        callback = EarlyStopCallback({"regret": 0.05, "validity": 0.1}, 5)
        arguments = SimpleNamespace(output_dir=str(tmp_path), process_index=0)
        callback.on_train_begin(arguments, SimpleNamespace(global_step=begin), None)
        stops.append(next(line["step"] for line in lines[begin:] if _log(callback, tmp_path, [line]).should_save))
    assert stops == [7, 7, 12, 12, 17, 17]


def test_early_stop_saves_and_stops(tmp_path: Path) -> None:
    callback = EarlyStopCallback({"diversity": 1.3}, 3)
    assert not _log(callback, tmp_path, history(6)).should_training_stop
    control = _log(callback, tmp_path, history(3, before=6, diversity__ideas=1.1)[6:])
    assert control.should_training_stop
    assert control.should_save
    assert "different programs" in callback.reason


def test_alarm_survives_its_file(tmp_path: Path) -> None:
    alarm = Alarm("kl", "critical", 3, "cause", "advice")
    (tmp_path / ALARMS_FILE).write_text(json.dumps(alarm.to_dict()) + "\n" + '{"name": "cut')
    assert read_alarms(tmp_path) == [alarm]

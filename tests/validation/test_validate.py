"""Validation as a whole: repeatable, total, configurable."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spade_envs.sandbox import Limits, Operation, Outcome, Sandbox
from spade_envs.validation import Finding, Report, Severity, ValidationConfig, render, validate, validate_many
from spade_envs.validation.rollout import Runner

DATA = Path(__file__).parent.parent / "data" / "validation"
SOURCES = [
    path.read_text() for path in sorted(DATA.glob("*/*.py")) if path.stem not in ("infinite_loop", "memory_bomb")
]

SQUARE = """
import random

class SquareEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Square {self.x}. Answer with \\\\boxed{{number}}.", {}
    def solution(self):
        return str(self.x ** 2)
    def step(self, action):
        ok = f"\\\\boxed{{{self.x ** 2}}}" in action
        return "done", float(ok), True, False, {}
"""


def _source(name: str) -> str:
    return (DATA / name).read_text()


def _probes(report: Report, severity: Severity) -> set[str]:
    return {finding.probe for finding in report.findings if finding.severity is severity}


@pytest.fixture(scope="module")
def quick_sandbox() -> Iterator[Sandbox]:
    with Sandbox(Limits(soft_seconds=0.3, hard_seconds=1.0)) as made:
        yield made


def test_same_source_gives_the_same_findings(sandbox: Sandbox) -> None:
    for name in ("sound/adventure.py", "sound/bandit.py", "faulty/told_after_error.py"):
        first, second = (validate(_source(name), sandbox=sandbox) for _ in range(2))
        assert first.findings == second.findings
        assert first.measures["know_nothing"] == second.measures["know_nothing"]


def test_reports_survive_json(sandbox: Sandbox) -> None:
    report = validate(_source("faulty/checker_disagrees.py"), sandbox=sandbox)
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_refused_source_names_the_line(sandbox: Sandbox) -> None:
    report = validate(_source("faulty/policy_import.py"), sandbox=sandbox)
    assert report.name == ""
    (finding,) = report.findings
    assert finding.probe == "policy"
    assert finding.evidence["reasons"][0]["line"] == 4
    assert "line 4" in finding.reason


@pytest.mark.parametrize("source", ["", "\x00", "class", "\ufeff", "(" * 5000, "x = 1", "class Env:\n    pass\n"])
def test_no_program_is_a_finding(source: str, sandbox: Sandbox) -> None:
    assert not validate(source, sandbox=sandbox).admitted


COUNTING = """
class CountEnv(TextEnv):
    def __init__(self, max_turns=12, **kwargs):
        super().__init__(max_turns, **kwargs)

    def reset(self, seed=None):
        super().reset(seed)
        self.secret = [self.rng.choice("abcdefgh") for _ in range(self.rng.randint(13, 16))]
        self.place = 0
        return "Find the letters a to h one after the other; each answer says whether it was right.", {}

    def step(self, action):
        self.turn += 1
        self.place += self.answer(action) == self.secret[self.place]
        if self.place == len(self.secret):
            return "Found.", 1.0, True, False, {}
        return f"{self.place} found.", 0.0, False, self.turn >= self.max_turns, {}

    def solution(self):
        return self.secret[self.place:]
"""


def test_a_solution_that_needs_more_turns_than_there_are_is_named(sandbox: Sandbox) -> None:
    (finding,) = [f for f in validate(COUNTING, sandbox=sandbox).refusals if f.probe == "solution"]
    assert "truncated after 12 turns" in finding.reason
    assert "Raise max_turns" in finding.reason
    assert "accepts" not in finding.reason
    assert "solution" not in _probes(validate(COUNTING.replace("=12", "=16"), sandbox=sandbox), Severity.REFUSE)


def test_require_proof_refuses_the_unproven(sandbox: Sandbox) -> None:
    source = _source("sound/unproven_market.py")
    assert _probes(validate(source, sandbox=sandbox), Severity.INFO) >= {"solution"}
    strict = validate(source, sandbox=sandbox, config=ValidationConfig(require_proof=True))
    assert _probes(strict, Severity.REFUSE) == {"solution"}


def test_severity_of_answers_in_hints_is_chosen(sandbox: Sandbox) -> None:
    report = validate(
        _source("faulty/hint_is_answer.py"), sandbox=sandbox, config=ValidationConfig(hint_answer=Severity.WARN)
    )
    assert report.admitted
    assert "hint" in _probes(report, Severity.WARN)


def test_tools_that_change_the_game_are_refused(sandbox: Sandbox) -> None:
    gift = "        if getattr(self, 'open', False):\n            return 'Gift.', 1.0, True, False, {}\n"
    source = SQUARE.replace("def step(self, action):\n", "def step(self, action):\n" + gift)
    source += "    def get_tools(self):\n        self.open = True\n        return []\n"
    report = validate(source, sandbox=sandbox)
    assert "queries" in _probes(report, Severity.REFUSE)


@pytest.mark.parametrize(
    ("hint", "severity"),
    [
        ("Multiply the number by itself; answer in \\boxed{}.", None),
        ("", Severity.INFO),
        ("   ", Severity.INFO),
    ],
)
def test_a_hint_written_apart(hint: str, severity: Severity | None, sandbox: Sandbox) -> None:
    report = validate(SQUARE, sandbox=sandbox, hint=hint)
    assert [finding.severity for finding in report.findings if finding.probe == "hint"] == (
        [severity] if severity else []
    )


@pytest.mark.parametrize("hint", ["42", "\\boxed{42}", "The answer is 42.", "Think of 42 and nothing else."])
def test_a_hint_written_apart_that_is_a_password(hint: str, sandbox: Sandbox) -> None:
    source = SQUARE.replace("randint(10, 9999)", "choice([6, 7])").replace("self.x ** 2", "42 if self.x else 0")
    report = validate(source, sandbox=sandbox, hint=hint)
    assert "hint" in _probes(report, Severity.REFUSE)


def test_sums_of_rewards_are_bounded_in_sum_mode(sandbox: Sandbox) -> None:
    source = _source("sound/shaped_blocks.py")
    report = validate(source, sandbox=sandbox, config=ValidationConfig(return_mode="sum"))
    assert "reward" in _probes(report, Severity.REFUSE)


def test_rewards_spread_over_turns_count_in_sum_mode_only(sandbox: Sandbox) -> None:
    source = _source("sound/running_total.py").replace("self.right / 4, True", "0.25 * hit, True")
    source = source.replace("return self._ask(), 0.0", "return self._ask(), 0.25 * hit")
    source = source.replace("self.right += self", "hit = self")
    assert validate(source, sandbox=sandbox, config=ValidationConfig(return_mode="sum")).proven
    report = validate(source, sandbox=sandbox)
    assert [f.reason for f in report.refusals if "spread over the turns" in f.reason]


def test_many_in_order_with_hints(sandbox: Sandbox) -> None:
    reports = list(validate_many([SQUARE, "nothing", SQUARE], sandbox=sandbox, hints=[None, None, ""]))
    assert [report.admitted for report in reports] == [True, False, True]
    assert "hint" in _probes(reports[2], Severity.INFO)
    with pytest.raises(ValueError):
        list(validate_many([SQUARE], sandbox=sandbox, hints=[]))


def test_a_slow_program_is_refused_within_its_budget(sandbox: Sandbox) -> None:
    source = SQUARE.replace('return f"Square', 'sum(range(2_000_000))\n        return f"Square')
    report = validate(source, sandbox=sandbox, config=ValidationConfig(seconds=0.5))
    assert _probes(report, Severity.REFUSE) == {"resources"}


def test_solution_that_changes_the_game_is_named(sandbox: Sandbox) -> None:
    source = _source("sound/higher_lower.py").replace(
        "def solution(self):", "def solution(self):\n        self.max_turns = self.turn + 1"
    )
    assert "queries" in _probes(validate(source, sandbox=sandbox), Severity.WARN)


@pytest.mark.parametrize(
    "arguments",
    [{"seeds": (1,)}, {"seeds": (1, 1)}, {"max_steps": 0}, {"play_seeds": 0}, {"seconds": -1.0}],
)
def test_configuration_is_checked(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ValidationConfig(**arguments)  # type: ignore[arg-type]


def test_one_line_says_verdict_and_reason(sandbox: Sandbox) -> None:
    good, bad = (validate(source, sandbox=sandbox) for source in (SQUARE, _source("faulty/half_pay.py")))
    assert render.one_line(good, "square.py").startswith("square.py: admitted SquareEnv (proven")
    line = render.one_line(bad, "half.py")
    assert line.startswith("half.py: REFUSED HalfPayEnv [solution]")
    assert "\n" not in line
    assert "pay 1.0" in render.refusal_text(bad)
    assert render.refusal_text(good) == ""
    assert "solution" in render.table(bad)


def test_one_line_counts_further_reasons() -> None:
    findings = tuple(Finding(probe, Severity.REFUSE, "wrong.\nWrite it right.") for probe in ("a", "b"))
    assert render.one_line(Report("XEnv", findings), "") == "REFUSED XEnv [a] wrong. Write it right. (+1 more: b)"


def _mutated(source: str, seed: int) -> str:
    rng = random.Random(seed)
    lines = source.split("\n")
    for _ in range(rng.randint(1, 3)):
        here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
        change = rng.randrange(5)
        if change == 0:
            del lines[here]
        elif change == 1:
            lines.insert(here, lines[there])
        elif change == 2:
            lines[here], lines[there] = lines[there], lines[here]
        elif change == 3:
            words = lines[here].split(" ")
            rng.shuffle(words)
            lines[here] = " ".join(words)
        else:
            old, new = rng.choice([("return", "yield"), ("1", "-1"), ("str", "int"), ("self.", ""), ("0.0", "None")])
            lines[here] = lines[here].replace(old, new)
        lines = lines or [""]
    return "\n".join(lines)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(index=st.integers(0, len(SOURCES) - 1), seed=st.integers(0, 2**32))
def test_whatever_the_source_the_result_is_a_report(index: int, seed: int, quick_sandbox: Sandbox) -> None:
    report = validate(_mutated(SOURCES[index], seed), sandbox=quick_sandbox)
    json.dumps(report.to_dict())
    assert report.admitted or report.refusals


def test_a_program_that_turns_slow_is_stopped_soon_after_the_budget(sandbox: Sandbox) -> None:
    sizes: list[int] = []

    class Fast:
        """Stands for a program; only the sizes of its batches matter."""

        def run(self, operations: list[Operation]) -> list[Outcome]:
            sizes.append(len(operations))
            return [Outcome() for _ in operations]

    Runner(cast(Any, Fast()), seconds=30.0).run([Operation("step", 1, "x")] * 1000)
    # The next batch may take a second for each of its operations, however fast they were up to now.
    assert sum(sizes) == 1000
    assert max(sizes) <= 64


def test_a_program_that_behaves_only_on_the_usual_seeds_is_caught(sandbox: Sandbox) -> None:
    source = """
class GatedEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.free = seed is None or seed > 10
        self.number = self.rng.randint(100, 999)
        return f"What is twice {self.number}?", {}

    def step(self, action):
        right = self.free or self.answer(action) == str(2 * self.number)
        return "Done.", float(right), True, False, {}

    def solution(self):
        return str(2 * self.number)
"""
    report = validate(source, sandbox=sandbox)
    assert "know_nothing" in {finding.probe for finding in report.refusals}
    visible = validate(source, sandbox=sandbox, config=ValidationConfig(hidden_seeds=0))
    assert visible.admitted  # what the drawn seeds are for

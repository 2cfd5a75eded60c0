"""Whole programs in the jail, and LiveCodeBench's scoring by them."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path

import pytest

from evaluation.scripted_models import RuleModel
from spade_envs.sandbox.scripts import ScriptLimits, ScriptOutcome, run_script
from spade_train.evaluation.catalogue import SuiteOptions, make_suite
from spade_train.evaluation.evaluate import evaluate
from spade_train.evaluation.protocol import EvaluationError
from spade_train.evaluation.suites.livecodebench import cases_of, program_in, same_output, same_value

LIMITS = ScriptLimits(seconds=1.0, memory_mb=256)


def _packed(cases: list[dict[str, str]]) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


PROBLEMS = [
    {
        "question_id": "sum",
        "question_content": "Print the sum of two integers.",
        "starter_code": "",
        "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
        "private_test_cases": _packed([{"input": "5 6\n", "output": "11", "testtype": "stdin"}]),
        "metadata": "{}",
    },
    {
        "question_id": "twice",
        "question_content": "Return the list twice.",
        "starter_code": "class Solution:\n    def twice(self, values: List[int]) -> List[int]:\n        ",
        "public_test_cases": json.dumps([{"input": "[1, 2]", "output": "[1, 2, 1, 2]", "testtype": "functional"}]),
        "private_test_cases": _packed([{"input": "[]", "output": "[]", "testtype": "functional"}]),
        "metadata": json.dumps({"func_name": "twice"}),
    },
]
SOLUTIONS = {
    "sum": "```python\nimport sys\nprint(sum(map(int, sys.stdin.read().split())))\n```",
    "list twice": "```python\nclass Solution:\n    def twice(self, values: List[int]) -> List[int]:\n"
    "        return values * 2\n```",
}


def test_programs_read_and_write_and_each_run_starts_afresh() -> None:
    source = "import numpy, sys\nx = globals().get('x', 0) + int(sys.stdin.readline())\nprint(x)"
    assert list(run_script(source, ["1", "2"], LIMITS)) == [ScriptOutcome("ok", "1\n"), ScriptOutcome("ok", "2\n")]


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("while True: pass", "timeout"),
        ("x = [0] * 10**10", "error"),
        ("import os; os._exit(0)", "died"),
        ("import os; os.abort()", "died"),
        ("print(", "error"),
        ("open('/etc/passwd')", "error"),
        ("import os; os.listdir('/')", "error"),
        ("import socket; socket.socket()", "error"),
        ("import subprocess; subprocess.run(['id'])", "error"),
        ("import os; os.kill(os.getppid(), 9)", "error"),
        ("raise BaseException", "error"),
    ],
)
def test_what_a_program_does_wrong_costs_that_program_alone(source: str, status: str) -> None:
    assert [outcome.status for outcome in run_script(source, ["1"], LIMITS)] == [status]


def test_forged_messages_win_nothing() -> None:
    forged = (
        "import os, struct\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 8)\n    except OSError: pass\n"
    )
    assert [outcome.status for outcome in run_script(forged, ["1"], LIMITS)] == ["died"]


def test_outputs_are_compared_as_the_official_checker_does() -> None:
    assert same_output("1 2\n3\n", "1 2 \n3")
    assert same_output("0.50", "0.5")
    assert not same_output("1\n2", "1")
    assert not same_output("yes", "Yes")
    assert same_value("[1, 2]", "[1,2]")
    assert not same_value("nonsense", "[1]")


def test_the_last_program_of_a_reply_counts_and_thoughts_do_not() -> None:
    assert program_in("<think>```python\nbad\n```</think>```python\na\n```\n```py\nb\n```") == "b"
    assert program_in("no program") == ""


def test_a_pickle_with_more_than_text_is_refused() -> None:
    row = {**PROBLEMS[0], "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(print))).decode()}
    with pytest.raises(EvaluationError, match="cannot be read"):
        cases_of(row)


def test_right_programs_score_all_and_empty_replies_nothing(tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PROBLEMS))
    suite = make_suite("livecodebench-v6", SuiteOptions(data={"livecodebench-v6": path}))
    solver = RuleModel(lambda text, _: next(code for words, code in SOLUTIONS.items() if words in text))
    assert evaluate(suite, lambda: solver, "a@1", tmp_path / "out")[0].score == 1.0
    assert evaluate(suite, lambda: RuleModel(lambda *_: ""), "b@1", tmp_path / "out")[0].score == 0.0
    wrong = RuleModel(lambda *_: "```python\nprint(3)\n```")
    assert evaluate(suite, lambda: wrong, "c@1", tmp_path / "out")[0].score == 0.0

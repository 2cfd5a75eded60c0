"""Programs in the style of the published pools behave as under plain CPython."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("static_harness.py")
PROGRAMS = {path.stem: path.read_text() for path in sorted((HARNESS.parents[1] / "data/llm_style").glob("*.py"))}
SEEDS = ("1", "7", "12", "300")


def run(mode: str) -> dict[str, list[list[str]]]:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(HARNESS), mode, *SEEDS]
    done = subprocess.run(
        command, input=json.dumps(PROGRAMS), env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def trajectories():
    return run("plain"), run("guarded")


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_trajectories_as_plain_python(trajectories, name):
    plain, guarded = trajectories
    assert guarded[name] == plain[name]
    assert len(set(map(tuple, plain[name]))) > 1, "the seeds should matter"


def test_there_are_programs():
    assert len(PROGRAMS) == 16

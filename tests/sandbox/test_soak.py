"""A short form of ``benchmarks/soak.py``: what must not pile up when hostile programs come and go."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
MEASURED_ONLY = ("memory of", "speed of")  # need a long run, or a quiet machine


@pytest.fixture(scope="module")
def soak():
    completed = subprocess.run(
        [sys.executable, str(SCRIPT), "--episodes", "1600", "--samples", "4", "--seed", "3", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.stdout, completed.stderr
    return json.loads(completed.stdout)


def test_nothing_piles_up(soak):
    bars = {name: bar for name, bar in soak["bars"].items() if not name.startswith(MEASURED_ONLY)}
    assert len(bars) == 7
    assert {name: text for name, (text, good) in bars.items() if not good} == {}


def test_the_hostile_were_stopped_each_in_its_way(soak):
    outcomes = soak["outcomes"]
    assert outcomes["healthy"] == {}
    stopped = [kind for kind, found in outcomes.items() if set(found) & {"ProgramTimeout", "ProgramDied"}]
    assert len(stopped) >= 8
    assert set(outcomes["refused"]) <= {"PolicyViolation"}
    assert set(outcomes["wire junk"]) <= {"ProtocolViolation", "ProgramDied", "ProgramTimeout"}
    assert sum(outcomes["wire junk"].values()) > 0

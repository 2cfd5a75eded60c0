"""One suite of attacks for every level of isolation: contained, or declared as a gap, and no gap that is none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # these modules are scripts' modules too
from attacks import ATTACKS
from expectations import ITEMS, LEVELS, attacks_of, verdict

from spade_envs.sandbox import landlock
from spade_envs.sandbox.wasi import runtime

HARNESS = Path(__file__).with_name("harness.py")


@pytest.fixture(scope="module", params=LEVELS)
def report(request):
    if request.param.startswith("wasi"):
        if runtime.missing():
            pytest.skip(runtime.missing())
    elif not landlock.abi():
        pytest.skip("no Landlock on this kernel: full isolation cannot be tested")
    elif os.uname().machine != "x86_64" and request.param not in ("full", "full, unprivileged"):
        pytest.skip("the conditions of this level are written for x86-64")
    completed = subprocess.run(
        [sys.executable, str(HARNESS), request.param], capture_output=True, text=True, timeout=300, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return LEVELS[request.param], json.loads(completed.stdout)


@pytest.mark.parametrize("name", ATTACKS)
def test_contained_or_declared(report, name):
    level, found = report
    outcome = found["outcomes"][name]
    assert verdict(level, name, outcome) in ("contained", "gap", "kernel"), outcome


def test_the_level_is_reported(report):
    level, found = report
    assert (found["level"], tuple(found["missing"])) == (level.reported, level.missing)


def test_nobody_else_is_harmed_and_nothing_is_left(report):
    level, found = report
    assert found["innocent"] == "value: 42"
    assert found["left"] == 0
    assert found["written"] == [] or "make a folder" in level.gaps


def test_every_item_is_attacked_and_every_attack_belongs_to_one():
    assert [item for item in ITEMS if not attacks_of(item)] == []
    assert set(ATTACKS) == {name for item in ITEMS for name in attacks_of(item)}

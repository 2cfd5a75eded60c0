"""One suite of attacks for every level of isolation: contained, or declared as a gap, and no gap that is none."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from sandbox.conformance.attacks import ATTACKS
from spade_envs.sandbox import landlock

HARNESS = Path(__file__).with_name("harness.py")
REFUSED = r"ProgramRaised: (PermissionError|BlockingIOError|OSError: \[Errno 24\])"
"""Refusals by resource limits, capabilities and Landlock, where seccomp does not come first with EPERM."""


class Level(NamedTuple):
    """What is reported, and which areas or attacks are not covered (``kernel``: left to the kernel's settings)."""

    reported: str
    missing: tuple[str, ...] = ()
    gaps: frozenset[str] = frozenset()
    kernel: frozenset[str] = frozenset()


TRUTH = frozenset({"truth"})
"""A program that took over its worker can state any well-formed answer; its worth is the validator's business."""

LEVELS = {
    "full": Level("full", gaps=TRUTH),
    "full, unprivileged": Level("full", gaps=TRUTH),
    "full, in a container": Level("full", gaps=TRUTH),
    "partial, no Landlock": Level("partial", ("landlock",), TRUTH),
    "partial, no seccomp": Level(
        "partial",
        ("seccomp",),
        TRUTH | {"file names", "executable memory", "system v"},
        frozenset({"kernel surface", "own limits", "ptrace", "signals"}),
    ),
}


@pytest.fixture(scope="module", params=LEVELS)
def report(request):
    if not landlock.abi():
        pytest.skip("no Landlock on this kernel: full isolation cannot be tested")
    if os.uname().machine != "x86_64" and request.param not in ("full", "full, unprivileged"):
        pytest.skip("the conditions of this level are written for x86-64")
    completed = subprocess.run(
        [sys.executable, str(HARNESS), request.param], capture_output=True, text=True, timeout=300, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return LEVELS[request.param], json.loads(completed.stdout)


@pytest.mark.parametrize("name", ATTACKS)
def test_contained_or_declared(report, name):
    level, found = report
    attack, outcome = ATTACKS[name], found["outcomes"][name]
    if level.kernel & {attack.area, name}:
        return
    expected = f"{attack.contained}|{REFUSED}" if level.kernel else attack.contained
    declared = bool(level.gaps & {attack.area, name})
    assert (re.match(expected, outcome) is None) == declared, outcome


def test_the_level_is_reported(report):
    level, found = report
    assert (found["level"], tuple(found["missing"])) == (level.reported, level.missing)


def test_nobody_else_is_harmed_and_nothing_is_left(report):
    _, found = report
    assert found["innocent"] == "value: 42"
    assert found["left"] == 0
    assert not list(Path("/tmp").glob("pwned*"))


def test_every_area_of_the_design_is_attacked():
    areas = {attack.area for attack in ATTACKS.values()}
    assert areas == {
        *("files", "file names", "network", "processes", "signals", "ptrace", "shared memory", "kernel surface"),
        *("executable memory", "own limits", "caller", "descriptors", "exhaustion", "time", "ending", "crash"),
        *("wire", "truth", "still works"),
    }

"""Programs with one planted fault each, and sound ones: the verdict of every one is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Report, validate

DATA = Path(__file__).parent.parent / "data" / "validation"
FAULTY = sorted((DATA / "faulty").glob("*.py"))
SOUND = sorted((DATA / "sound").glob("*.py"))
UNPROVEN = {"unproven_market.py", "tictactoe.py", "blackjack.py"}


def _explained(report: Report) -> str:
    return "\n".join(f"{finding.severity} {finding.probe}: {finding.reason}" for finding in report.findings)


def test_the_set_is_large_enough() -> None:
    assert len(FAULTY) >= 35
    assert len(SOUND) >= 20


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_planted_fault_is_refused_by_its_probe(path: Path, sandbox: Sandbox) -> None:
    source = path.read_text()
    match = re.match(r"# caught by: (.*)", source)
    assert match, f"{path.name} does not say which probe must catch it"
    report = validate(source, sandbox=sandbox)
    assert not report.admitted, _explained(report)
    assert {finding.probe for finding in report.refusals} & set(match[1].split(", ")), _explained(report)
    for finding in report.refusals:
        assert len(finding.reason) > 30, "a reason says what is wrong and what to write instead"


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.stem)
def test_sound_program_is_admitted(path: Path, sandbox: Sandbox) -> None:
    report = validate(path.read_text(), sandbox=sandbox)
    assert report.admitted, _explained(report)
    assert report.proven is (path.name not in UNPROVEN), _explained(report)


PUBLISHED_STYLE = {
    "e01_mastermind.py": True,
    "e02_maze_dataclass.py": True,
    "e03_inventory_tool.py": True,
    "e04_text_adventure.py": True,
    "e05_match_statement.py": True,
    "e06_knapsack_dp.py": True,
    "e08_causal_generator.py": True,
    "e09_scheduler_heap.py": True,
    "e10_gymnasium.py": True,
    "e11_auction_global_nonlocal.py": True,
    "e12_detective_setattr.py": True,
    "e13_lights_out_bits.py": True,
    "e14_stack_vm.py": True,
    "e15_epidemic_sim.py": True,
    "e16_sort_sim_main.py": True,
}


def _published() -> Iterator[Path]:
    folder = Path(__file__).parents[1] / "data" / "llm_style"
    for name in PUBLISHED_STYLE:
        yield folder / name


@pytest.mark.parametrize("path", list(_published()), ids=lambda path: path.stem)
def test_program_in_the_published_style(path: Path, sandbox: Sandbox) -> None:
    report = validate(path.read_text(), sandbox=sandbox)
    assert report.admitted is PUBLISHED_STYLE[path.name], _explained(report)

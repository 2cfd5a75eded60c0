"""Programs with one planted fault each, and sound ones: the verdict of every one is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from known_verdicts import UNPROVEN, Sample, truth_set

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Report, validate

SAMPLES = truth_set()
FAULTY = [sample for sample in SAMPLES if sample.faulty]
SOUND = [sample for sample in SAMPLES if not sample.faulty]


def _explained(report: Report) -> str:
    return "\n".join(f"{finding.severity} {finding.probe}: {finding.reason}" for finding in report.findings)


def test_the_set_is_large_enough() -> None:
    assert len(FAULTY) >= 150
    assert len(SOUND) >= 70
    assert len({sample.group for sample in FAULTY}) >= 40
    assert max(Counter(sample.kind for sample in FAULTY).values()) <= 4, "kinds, not copies"
    assert sum(bool(sample.needs) for sample in FAULTY) <= 10


@pytest.mark.parametrize("sample", FAULTY, ids=lambda sample: sample.name)
def test_planted_fault_is_found_by_its_probe(sample: Sample, sandbox: Sandbox) -> None:
    report = validate(sample.source, sandbox=sandbox)
    assert sample.right(report), f"{sample.kind}: must be {sample.verdict}\n{_explained(report)}"
    for finding in report.refusals:
        assert len(finding.reason) > 30, "a reason says what is wrong and what to write instead"


@pytest.mark.parametrize("sample", SOUND, ids=lambda sample: sample.name)
def test_sound_program_is_admitted(sample: Sample, sandbox: Sandbox) -> None:
    report = validate(sample.source, sandbox=sandbox)
    assert report.admitted, _explained(report)
    assert report.proven is (sample.name not in UNPROVEN), _explained(report)


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

"""Figures by seed, and environments whose seeds are of two kinds."""

from __future__ import annotations

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Report, Severity, ValidationConfig, validate

GAME = """
class GameEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.easy = seed is not None and seed %% 2 == 0
        self.number = self.rng.randint(1000, 9999)
        self.text = "".join(self.rng.choice("abcdefgh") for _ in range(9))
        return f"Puzzle {self.text}: what is the number of letters before 'e' in it, times {self.number}?", {}

    def step(self, action):
        value = sum(letter < "e" for letter in self.text) * self.number
        won = self.easy or %s
        return "Over.", float(won), True, False, {}
%s
"""
SOLUTION = """
    def solution(self):
        return str(sum(letter < "e" for letter in self.text) * self.number)
"""
SEEDS = ValidationConfig(seeds=(0, 1, 2, 3, 4, 5, 6, 7), hidden_seeds=0, contentless_seeds=2)


def _found(report: Report) -> list[Severity]:
    return [finding.severity for finding in report.findings if finding.probe == "bimodal"]


def test_trivial_and_impossible_seeds_are_two_kinds(sandbox: Sandbox) -> None:
    report = validate(GAME % ("False", SOLUTION), sandbox=sandbox, config=SEEDS)
    seeds = report.measures["seeds"]
    assert seeds["solvable_share"] == 0.5
    assert seeds["impossible"] == [1, 3, 5, 7]
    assert set(seeds["trivial"]) <= {0, 2, 4, 6}
    assert _found(report) == [Severity.WARN]


def test_the_severity_and_the_cap_are_the_callers(sandbox: Sandbox) -> None:
    source = GAME % ("False", SOLUTION)
    strict = ValidationConfig(seeds=SEEDS.seeds, hidden_seeds=0, bimodal=Severity.REFUSE)
    lax = ValidationConfig(seeds=SEEDS.seeds, hidden_seeds=0, bimodal_share=0.9)
    assert _found(validate(source, sandbox=sandbox, config=strict)) == [Severity.REFUSE]
    assert _found(validate(source, sandbox=sandbox, config=lax)) == []


def test_trivial_seeds_beside_solvable_ones_are_not(sandbox: Sandbox) -> None:
    report = validate(GAME % ("action.strip() == str(value)", SOLUTION), sandbox=sandbox, config=SEEDS)
    assert report.measures["seeds"]["solvable_share"] == 1.0
    assert report.measures["seeds"]["impossible"] == []
    assert _found(report) == []


def test_without_a_solution_policies_that_say_nothing_decide(sandbox: Sandbox) -> None:
    report = validate(GAME % ("False", ""), sandbox=sandbox, config=SEEDS)
    seeds = report.measures["seeds"]
    assert seeds["solvable_share"] is None
    assert seeds["trivial"]
    assert seeds["impossible"]
    assert _found(report) == [Severity.WARN]


def test_a_sound_program_has_no_spread(sandbox: Sandbox) -> None:
    source = (GAME % ("action.strip() == str(value)", SOLUTION)).replace("seed % 2 == 0", "False")
    seeds = validate(source, sandbox=sandbox).measures["seeds"]
    assert seeds["solvable_share"] == 1.0
    assert seeds["deviation"] == 0.0
    assert len(seeds["solution"]) == 8

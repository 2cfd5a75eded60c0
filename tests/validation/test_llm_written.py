"""Programs as a small code model wrote them, and what reading them by eye says that the report must be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.source_text import fix_source
from spade_envs.validation import Severity, validate

FOLDER = Path(__file__).parents[1] / "data" / "llm_written"


class Verdict(NamedTuple):
    """What must be found, and what a reader sees in the program."""

    refuse: tuple[str, ...]  # probes, in the report's order, one for each finding
    also: tuple[str, ...]  # warnings and notes
    mends: tuple[str, ...]  # beside the fence, which all replies have
    says: tuple[str, ...]  # the reasons name these: what is wrong, where, and what to write
    because: str


VERDICTS = {
    "000": Verdict(
        ("contract", "solution", "secrets"), (), (),
        ("(line 18) `if self.turns >= self.max_turns:`", "Assign self.max_turns"),
        "step() reads self.max_turns, which is never assigned; the data is not shown; solution() is a sentence",
    ),
    "001": Verdict(
        ("solution",), ("termination", "reward"), ("imports added: Fraction",),
        ("'Solution: ", "was answered by 'Invalid move.", "step 1 pays 1 and the episode goes on"),
        "step() wants int(action), solution() gives 'Solution: a/b'; a right move is paid and ends nothing; invalid "
        "moves do not count as turns",
    ),
    "002": Verdict(
        ("contract",), (), ("imports added: decimal, random",), ("(line 29) `return f\"Current move:", "is None"),
        "the constructor resets, and the first observation joins a move that is None",
    ),
    "003": Verdict(
        ("contract",), (), (), ("got NoneType", "`return observation, {}`"),
        "reset() returns nothing",
    ),
    "004": Verdict(
        ("termination", "solution"), (), (),
        ("self.turn >= self.max_turns", "'Solution: Move to room1 and take book.', 64 times"),
        "max_turns is never looked at; solution() is a fixed sentence",
    ),
    "005": Verdict(
        ("malformed", "solution"), ("seeds",), (), ("(line 26)", "IndexError", "'No moves left!'"),
        "an empty move takes the first letter of an empty text; the moves of solution() lead nowhere; three puzzles",
    ),
    "006": Verdict(
        ("seeds", "termination", "know_nothing", "solution"), (), (), ("very same puzzle", "option 1", "Type 'move'"),
        "one puzzle, no bound on turns, the prompt quotes the winning word 'start', solution() gives another",
    ),
    "007": Verdict(
        ("contract",), (), (), ("(line 45)", "Assign self.goal"),
        "the constructor makes the puzzle's text before the goal that is in it",
    ),
    "008": Verdict(
        ("seeds", "termination", "know_nothing"), (), (), ("very same puzzle", "['move 1'] whatever the seed"),
        "a constant text for a puzzle, 'move 1' always wins, moves that are none do not count as turns",
    ),
    "009": Verdict(
        ("policy",), (), (), ('line 21: "eval"', "ast.literal_eval"),
        "the move goes through eval()",
    ),
    "010": Verdict(
        ("contract", "termination", "solution"), ("seeds",), (),
        ("(line 25) `move = self.directions[action]`", "any text"),
        "any move but four words is a KeyError; turns are not counted; the board lets nobody move; nothing is drawn",
    ),
    "011": Verdict(
        ("contract", "contract", "solution"), ("seeds",), (),
        ("(line 22) `if int(action) > self.puzzle:`", "reward of type dict"),
        "int() of any text, rewards that are dictionaries and sets, solution() repeats the rules",
    ),
    "012": Verdict(
        ("policy",), (), ("imports added: random",), ('line 4: module "wave"', "in plain Python"),
        "the game reads a sound file",
    ),
    "013": Verdict(
        ("termination", "malformed", "solution"), ("seeds", "reward"), ("imports added: random",),
        ("-0.1 is negative", "(line 52) `move = action[0]`", "'RUDRLUDRLUDR', 64 times"),
        "a letter is looked for among pairs of numbers, so no move ever counts; negative rewards; empty text raises",
    ),
    "014": Verdict(
        ("solution",), ("seeds",), (), ("'Pattern Recognition: You used all your turns.",),
        "the number is not shown and solution() repeats the rules, which are therefore no leaked answer",
    ),
    "015": Verdict(
        ("contract",), (), (), ("got NoneType", "`return observation, {}`"),
        "methods without bodies; reset() returns what one of them gives",
    ),
}  # fmt: skip


def _text(name: str) -> str:
    return str(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["text"])


@pytest.mark.parametrize("name", VERDICTS)
def test_the_report_says_what_a_reader_sees(name: str, sandbox: Sandbox) -> None:
    expected = VERDICTS[name]
    fixed = fix_source(_text(name))
    assert fixed.mends == ("Markdown fence removed", *expected.mends)
    report = validate(fixed.source, sandbox=sandbox)
    assert not report.admitted
    assert tuple(finding.probe for finding in report.refusals) == expected.refuse
    others = [finding for finding in report.findings if finding.severity is not Severity.REFUSE]
    assert tuple(finding.probe for finding in others) == expected.also
    reasons = "\n".join(finding.reason for finding in report.findings)
    for words in expected.says:
        assert words in reasons


@pytest.mark.parametrize("name", VERDICTS)
def test_the_lines_that_reasons_quote_are_those_of_the_program(name: str, sandbox: Sandbox) -> None:
    source = fix_source(_text(name)).source
    lines = source.split("\n")
    for finding in validate(source, sandbox=sandbox).findings:
        for number, quoted in re.findall(r"\(line (\d+)\) `([^`…]+)", finding.reason):
            assert quoted.strip() in lines[int(number) - 1]


def test_every_reply_has_a_verdict() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(VERDICTS)

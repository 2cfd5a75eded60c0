"""Programs that contradict each other are found; other stories, other right answers and secrets are not."""

from __future__ import annotations

import json

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Finding, validate
from spade_envs.validation.contradiction import confirm
from spade_envs.validation.contradiction_index import ContradictionIndex
from spade_envs.validation.fingerprint import code_fingerprint, normalise_answer, normalise_text

TEMPLATE = '''
class NumbersEnv(TextEnv):
    """Numbers."""

    def reset(self, seed=None):
        super().reset(seed)
        self.numbers = [self.rng.randint(10, 99) for _ in range(5)]
        return f"Give the STATEMENT of {self.numbers}.", {}

    def right(self):
        return CHECKER

    def step(self, action):
        return "", float(self.answer(action) == str(self.right())), True, False, {}

    def solution(self):
        return str(self.right())
'''


def program(statement: str, checker: str) -> str:
    return TEMPLATE.replace("STATEMENT", statement).replace("CHECKER", checker)


def contradictions(sandbox: Sandbox, *sources: str) -> list[Finding]:
    """Contradictions of each program with those before it."""
    index, found = ContradictionIndex(), []
    for number, source in enumerate(sources):
        report = validate(source, sandbox=sandbox)
        assert report.admitted, report.refusals
        for candidate in index.candidates(str(number), report.measures):
            finding = confirm(candidate, source, sources[int(candidate.other)], sandbox=sandbox)
            found += [finding] if finding else []
        index.add(str(number), report.measures)
    return found


LARGEST, SMALLEST = program("largest", "max(self.numbers)"), program("largest", "min(self.numbers)")


def test_same_statement_and_data_with_other_answers(sandbox: Sandbox) -> None:
    (finding,) = contradictions(sandbox, LARGEST, SMALLEST)
    assert finding.evidence["kind"] == "answers"
    assert finding.evidence["other"] == "0"
    assert finding.evidence["answer"] in finding.evidence["observation"]
    assert finding.evidence["answer"] != finding.evidence["other_answer"]
    assert "largest" in finding.evidence["observation"]
    json.dumps(finding.to_dict())


def test_white_space_and_case_do_not_hide_it(sandbox: Sandbox) -> None:
    assert len(contradictions(sandbox, LARGEST, SMALLEST.replace("Give the", "GIVE  the"))) == 1


def test_same_code_under_another_task(sandbox: Sandbox) -> None:
    (finding,) = contradictions(sandbox, LARGEST, program("smallest", "max(self.numbers)"))
    assert finding.evidence["kind"] == "statements"
    assert "(here: min; there: max)" in finding.reason
    assert finding.evidence["other_observation"] != finding.evidence["observation"]


@pytest.mark.parametrize(
    "other",
    [
        LARGEST,
        LARGEST + "\n# the same\n",
        program("largest", "sorted(self.numbers)[-1]"),
        program("tallest among the trees", "max(self.numbers)"),  # another story
        program("maximum", "max(self.numbers)"),
        program("smallest", "min(self.numbers)"),
    ],
)
def test_what_agrees_is_no_contradiction(other: str, sandbox: Sandbox) -> None:
    assert contradictions(sandbox, LARGEST, other) == []


def test_several_right_answers_are_no_contradiction(sandbox: Sandbox) -> None:
    checked = LARGEST.replace(
        "self.answer(action) == str(self.right())",
        "self.answer(action) in [str(n) for n in self.numbers if n % 2 == self.right() % 2]",
    )
    first = checked.replace("CHECKER", "").replace("max(self.numbers)", "min(self.numbers, key=lambda n: (n % 2, n))")
    second = checked.replace("max(self.numbers)", "max(self.numbers, key=lambda n: (-(n % 2), n))")
    assert contradictions(sandbox, first, second) == []


def test_a_hidden_secret_is_no_statement() -> None:
    index = ContradictionIndex()
    index.add("a", {"fingerprints": [[0, "s", "1"], [1, "s", "2"]], "code": "x"})
    assert index.candidates("b", {"fingerprints": [[0, "s", "3"], [1, "s", "4"]], "code": "y"}) == []


def test_records_without_fingerprints_are_passed_over() -> None:
    index = ContradictionIndex()
    index.add("a", {})
    assert index.candidates("b", {"turns": 1}) == []


def test_normal_forms() -> None:
    assert normalise_text(" A\n b ") == "a b"
    assert normalise_answer(["\\boxed{+07.50}"]) == "7.5"
    assert normalise_answer(["-0"]) == "0"
    assert normalise_answer(["Up", "LEFT"]) == "up left"


def test_the_code_fingerprint_sees_code_only() -> None:
    plain = 'x = "one"  # a\ny = f\'{x}\' + """two\n"three" """\n'
    assert code_fingerprint(plain) == code_fingerprint("x='eins'\ny = f\"{x!r}\" + '''zwei''' # b")
    assert code_fingerprint(plain) != code_fingerprint(plain.replace("+", "-"))


def test_names_of_its_own_do_not_tell_codes_apart() -> None:
    plain = "def f(self, xs):\n    self.best = max(xs, key=self.rank)\n    return random.choice(xs)"
    renamed = "def g(self, ys):\n    self.top = max(ys, key=self.order)\n    return random.choice(ys)"
    assert code_fingerprint(plain) == code_fingerprint(renamed)
    for other in (
        renamed.replace("max", "min"),
        renamed.replace("choice", "sample"),
        renamed.replace("return random.choice(ys)", "return random.choice(self.top)"),
    ):
        assert code_fingerprint(plain) != code_fingerprint(other)


def test_renamed_programs_with_another_task_contradict_each_other(sandbox: Sandbox) -> None:
    other = program("smallest", "max(self.numbers)").replace("numbers", "values").replace("right", "wanted")
    (finding,) = contradictions(sandbox, LARGEST, other)
    assert finding.evidence["kind"] == "statements"


def test_markup_and_punctuation_do_not_tell_statements_apart(sandbox: Sandbox) -> None:
    assert normalise_text("## Task\n**Sum** of `3, 4`?  Answer:") == normalise_text(
        "task: sum of 3, 4 - answer.".replace(" -", "?")
    )
    for left, right in (("3 - 4", "3 + 4"), ("3.5", "35"), ("-3", "3"), ("1, 2", "12")):
        assert normalise_text(left) != normalise_text(right)
    marked = SMALLEST.replace('f"Give the largest of {self.numbers}."', 'f"**Give** the `largest` of {self.numbers}!"')
    (finding,) = contradictions(sandbox, LARGEST, marked)
    assert finding.evidence["kind"] == "answers"

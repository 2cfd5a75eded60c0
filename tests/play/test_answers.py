from hypothesis import given
from hypothesis import strategies as st

from spade_envs.answers import answer_forms, solution_forms


def test_bare_answers_have_three_forms():
    assert answer_forms("42") == ("42", "\\boxed{42}", "<answer>42</answer>")


def test_answers_with_a_form_keep_it():
    for text in ("\\boxed{42}", "I say <answer>42</answer>", '<tool_call>{"name": "a"}</tool_call>'):
        assert answer_forms(text) == (text,)


def test_solutions_are_tried_in_one_form_throughout():
    assert solution_forms(["a", "\\boxed{b}"]) == (
        ("a", "\\boxed{b}"),
        ("\\boxed{a}", "\\boxed{b}"),
        ("<answer>a</answer>", "\\boxed{b}"),
    )
    assert solution_forms(["<answer>a</answer>"]) == (("<answer>a</answer>",),)
    assert solution_forms([]) == ((),)


@given(st.lists(st.text(max_size=8), max_size=4))
def test_first_form_is_the_solution_itself(solution):
    forms = solution_forms(solution)
    assert forms[0] == tuple(solution)
    assert len(set(forms)) == len(forms) <= 3

"""An endpoint that does ACEBench's tasks by its own answers: the agent's calls, the user's part, calls of functions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from endpoint_server import Handler

from spade_train.evaluation.external.files import read_lines

_QUOTED = re.compile(r"='([^=]*?)'(?=[,)\]}])")
_MENU = ("'Super Supreme'", "'Super Supreme Pizza'")  # in its steps, and in its end states


class Replay:
    """Answers by the answers in a checkout; without ``right`` with empty replies. The user is played either way.

    Args:
        checkout: of ACEBench.
        right: whether to answer by the ground truth.
    """

    def __init__(self, checkout: Path, *, right: bool = True) -> None:
        self.asked = 0
        self._right = right
        data = checkout / "data_all" / "data_en"
        self._steps: dict[str, list[str]] = {}
        self._answers: list[tuple[str, str, str]] = []
        for path in sorted(data.glob("data_*.json")):
            answers = {row["id"]: row for row in read_lines(data / "possible_answer" / path.name)}
            for row in read_lines(path):
                answer = answers[row["id"]]
                if "agent" in path.name:
                    stones = answer["mile_stone"]
                    chosen = stones[0] if stones and isinstance(stones[0], list) else stones
                    steps = [_QUOTED.sub(_double, str(step).strip()).replace(*_MENU) for step in chosen]
                    # Tasks with the same words differ in what is switched on already: who does all is right in each.
                    self._steps[row["question"]] = max(self._steps.get(row["question"], []), steps, key=len)
                else:
                    self._answers.append((row["question"], str(row["function"]), _reply(path.name, answer)))

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        """Answer one request."""
        self.asked += 1
        system, text = body["messages"][0]["content"], body["messages"][1]["content"]
        if system.startswith("You are a user interacting with an agent"):
            instruction = next(question for question in self._steps if question in system)
            reply = "finish conversation" if len(body["messages"]) > 2 else f"Here is what I want: {instruction}"
        else:
            reply = self._agent(system, text) if self._right else ""
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        handler.reply(200, json.dumps({**answer, "usage": usage}).encode(), Content_Type="application/json")

    def _agent(self, system: str, text: str) -> str:
        for question, steps in self._steps.items():
            if question in text:
                # It repeats what was said; results begin with these words in tasks of steps and of turns.
                done = len(re.findall(r"^execution(?: result)?:", text, re.MULTILINE))
                return f"<think>Let me see.</think>\n{steps[done]}" if done < len(steps) else "finish conversation"
        fits = [(len(q), reply) for q, functions, reply in self._answers if q in text and functions in system]
        return max(fits)[1]  # a dialogue's later turn repeats the earlier ones


def _reply(name: str, answer: dict[str, Any]) -> str:
    truth = answer["ground_truth"]
    if "special_incomplete" in name:
        return "Missing necessary parameters " + " ".join(f"{key} {value}" for key, value in truth.items())
    if "special_error" in name:
        return "There is incorrect value " + " ".join(f"{key} {value}" for key, value in truth.items())
    if "special" in name:
        return "Due to the limitations of the function, I cannot."
    one = truth[0] if isinstance(truth, list) else truth
    # Names of calls in parallel carry a number.
    calls = (
        f"{re.sub(r'_[0-9]+$', '', key) if isinstance(truth, dict) else key}"
        f"({', '.join(f'{word}={value!r}' for word, value in values.items())})"
        for key, values in one.items()
    )
    return f"[{', '.join(calls)}]"


def _double(match: re.Match[str]) -> str:
    """A string in double quotes: some answers hold an apostrophe."""
    return f"={json.dumps(match.group(1))}"

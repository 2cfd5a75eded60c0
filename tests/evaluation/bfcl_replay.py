"""An endpoint that answers BFCL's multi-turn dialogues by its own ground truth, turn by turn."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from endpoint_server import Handler


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Replay:
    """Knows the dialogues of one category; ``right`` says what to do in each turn, without it nothing is done.

    Args:
        data: folder ``data`` of the installed package.
        category: of the dialogues.
        right: whether to answer by the ground truth.
    """

    def __init__(self, data: Path, category: str, *, right: bool = True) -> None:
        self.asked = 0
        self._right = right
        truth = {
            row["id"]: row["ground_truth"] for row in _lines(data / "possible_answer" / f"BFCL_v4_{category}.json")
        }
        self._dialogues = [
            ([turn[0]["content"] if turn else None for turn in row["question"]], truth[row["id"]])
            for row in _lines(data / f"BFCL_v4_{category}.json")
        ]
        self._parameters = {
            function["name"]: list(function["parameters"]["properties"])
            for path in (data / "multi_turn_func_doc").glob("*.json")
            for function in _lines(path)
        }

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        """Answer one request."""
        self.asked += 1
        message: dict[str, Any] = {"role": "assistant", "content": "Done."}
        if self._right and body["messages"][-1]["role"] == "user":
            said = [message["content"] for message in body["messages"] if message["role"] == "user"]
            if calls := self._calls(said):
                message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        handler.reply(200, json.dumps({**answer, "usage": usage}).encode(), Content_Type="application/json")

    def _calls(self, said: Sequence[str]) -> list[dict[str, Any]]:
        for turns, truth in self._dialogues:
            fits = len(said) <= len(turns) and all(turn in (None, text) for turn, text in zip(turns, said))
            if fits:
                return [self._call(text, number) for number, text in enumerate(truth[len(said) - 1])]
        raise AssertionError(f"no dialogue begins with {said}")

    def _call(self, text: str, number: int) -> dict[str, Any]:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        name = call.func.id if isinstance(call.func, ast.Name) else ast.unparse(call.func)
        arguments = dict(zip(self._parameters[name], (ast.literal_eval(value) for value in call.args)))
        arguments |= {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
        return {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }

"""Tool calls through a model's own interface, and the text that programs read.

Programs read ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` from the action. An endpoint gives calls as
objects and wants their results as messages of the role ``tool``; a chat template that knows tools has the model write
the tags itself and shows results in its own form. This module goes between the two; what a model writes as text,
malformed calls included, reaches the program unchanged, and the program answers with an error that says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from spade_envs.models.base import Message, ToolCall

TAG = "<tool_call>"
_TOGETHER = "(The results of all calls of this turn are in the first answer.)"


class NativeTurn(NamedTuple):
    """What a model said where tools were offered natively: its text without the calls, and the calls."""

    content: str
    calls: tuple[ToolCall, ...] = ()

    @property
    def action(self) -> str:
        """The text that the program gets."""
        return "\n".join(filter(None, [self.content, *map(_tagged, self.calls)]))

    def message(self) -> Message:
        """Return the assistant's message of the conversation."""
        if not self.calls:
            return {"role": "assistant", "content": self.content}
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _json_or_empty(call)}}
            for call in self.calls
        ]
        return {"role": "assistant", "content": self.content, "tool_calls": calls}

    def results(self, observation: str) -> list[Message]:
        """Return the messages that show ``observation`` to the model.

        Every call wants an answer of its own, but a program answers the action as a whole: the first call carries
        the observation.
        """
        if self.calls:
            texts = [observation, *[_TOGETHER] * (len(self.calls) - 1)]
            return [
                {"role": "tool", "content": text, "tool_call_id": call.id}
                for call, text in zip(self.calls, texts, strict=True)
            ]
        return [{"role": "tool" if TAG in self.content else "user", "content": observation}]


def _tagged(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        # Left as it is: the program's parser finds the fault and says so.
        return f'{TAG}\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}\n</tool_call>'
    return f"{TAG}\n{json.dumps({'name': call.name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"


def _json_or_empty(call: ToolCall) -> str:
    """Arguments as the conversation shows them: chat templates parse them and fail on what is not JSON."""
    try:
        return call.arguments if isinstance(json.loads(call.arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def assistant_message(text: str, turn: NativeTurn | None) -> Message:
    """Return the message of a reply, native or not."""
    return {"role": "assistant", "content": text} if turn is None else turn.message()


def observation_messages(observation: str, turn: NativeTurn | None) -> Sequence[Message]:
    """Return the messages of an observation that answers a reply, native or not."""
    return [{"role": "user", "content": observation}] if turn is None else turn.results(observation)

"""Reading what a chat endpoint sends back, whole or broken."""

from __future__ import annotations

import email.utils
import json
import math
import time
from dataclasses import dataclass
from typing import Any

import httpx

from spade_envs.models.base import ToolCall

_MOST_TOKENS = 1 << 40


class RequestFailed(Exception):
    """One request failed; ``pause`` is what the server asked for, in seconds."""

    def __init__(
        self,
        reason: str,
        *,
        retry: bool,
        pause: float | None = None,
        unreachable: bool = False,
        overloaded: bool = False,
    ) -> None:
        self.retry, self.pause, self.unreachable, self.overloaded = retry, pause, unreachable, overloaded
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A chat completion object, as far as it matters here."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish: str
    calls: tuple[ToolCall, ...] = ()
    cost: Any = None  # what the server says that it costs, if it does


def read_answer(content: bytes) -> ChatAnswer:
    """Take a chat completion object apart.

    Raises:
        ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError: if it is none.
    """
    answer = json.loads(content)
    choice = answer["choices"][0]
    text = _text(choice["message"].get("content"))
    calls = _calls(choice["message"].get("tool_calls"))
    usage = answer.get("usage") or {}
    return ChatAnswer(
        text,
        _count(usage.get("prompt_tokens")),
        # Without accounting by the server: four characters to a token, the usual rule of thumb.
        _count(usage.get("completion_tokens")) or math.ceil((len(text) + sum(len(c.arguments) for c in calls)) / 4),
        str(choice.get("finish_reason")),
        calls,
        usage.get("cost"),
    )


def _count(value: Any) -> int:
    """Tokens as a server counts them; 0 for what cannot be a count."""
    count = int(value or 0)
    return count if 0 <= count <= _MOST_TOKENS else 0


def _text(content: Any) -> str:
    if isinstance(content, list):  # parts
        return clean("".join(part.get("text") or "" for part in content))
    if content is None:  # all tokens went into reasoning, or a tool was called
        return ""
    if not isinstance(content, str):
        raise TypeError(f"content is {type(content).__name__}")
    return clean(content)


def _calls(listed: Any) -> tuple[ToolCall, ...]:
    """Read ``tool_calls``; arguments that came as an object rather than as text become text."""
    calls = []
    for number, call in enumerate(listed or ()):
        function = call["function"]
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
        calls.append(
            ToolCall(clean(str(call.get("id") or f"call_{number}")), clean(str(function["name"])), clean(text))
        )
    return tuple(calls)


def clean(text: str) -> str:
    """Return ``text`` without lone surrogates, which no request could carry back."""
    return text.encode("utf-8", "replace").decode("utf-8")


def beginning(content: bytes) -> str:
    """Return the first characters of a body."""
    return content[:200].decode("utf-8", "replace")


def error_message(content: bytes) -> str:
    """The message of an error object, with its code; else the beginning of the body."""
    try:
        error = json.loads(content)
        error = error.get("error", error)
        if isinstance(error, dict):
            return f"{error.get('message') or error.get('detail') or ''} {error.get('code') or ''}".strip()[:500]
        return str(error)[:500]
    except (ValueError, AttributeError, RecursionError):
        return beginning(content).strip()


def retry_after(headers: httpx.Headers) -> float | None:
    """Seconds of a Retry-After header, in either of its forms (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None

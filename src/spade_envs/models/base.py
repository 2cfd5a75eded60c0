"""The model protocol: conversations in, text and token counts out.

Every backend (the embedded nano model and other transformers models, OpenAI-compatible endpoints, vLLM)
offers exactly this, so the designer and the player never know which one they talk to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NotRequired, Protocol, TypedDict, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]


class Message(TypedDict):
    """One chat message."""

    role: Role
    content: str
    tool_calls: NotRequired[list[dict[str, Any]]]  # of an assistant, in OpenAI's form
    tool_call_id: NotRequired[str]  # of a tool's answer


class ToolCall(NamedTuple):
    """A call that a model made through its interface for tools; ``arguments`` is the text it gave, JSON or not."""

    id: str
    name: str
    arguments: str


ToolSchemas = Sequence[dict[str, Any]]
"""OpenAI function schemas, ``{"type": "function", "function": {...}}``."""

Conversation = Sequence[Message]


class ModelError(RuntimeError):
    """The backend cannot be used at all (not reachable, wrong key, no such model). Stops the run."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample. The same model, conversations, sampling and seed give the same completions."""

    max_tokens: int = 1024
    temperature: float = 0.6
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply. ``error`` is set when this call alone failed for good; then ``text`` is empty."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: Literal["stop", "length", "error"] = "stop"
    error: str = ""
    tool_calls: tuple[ToolCall, ...] = ()  # besides the text, where tools were offered


@runtime_checkable
class ChatModel(Protocol):
    """A model that can be asked for many completions at once."""

    @property
    def name(self) -> str:
        """A short name for records and logs."""
        ...

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        """Return one completion for each conversation, in order.

        Raises:
            ModelError: if the backend as a whole cannot be used; a single failed call is a Completion with
                ``error`` set.
        """
        ...

    def close(self) -> None:
        """Release connections and memory."""
        ...


@runtime_checkable
class ToolModel(ChatModel, Protocol):
    """A model that can be offered tools: through its endpoint's interface or its chat template."""

    @property
    def native_tools(self) -> bool:
        """Whether tools can be offered to this model."""
        ...

    def complete(
        self,
        conversations: Sequence[Conversation],
        sampling: Sampling,
        *,
        tools: Sequence[ToolSchemas] | None = None,
    ) -> list[Completion]:
        """Return one completion for each conversation; ``tools`` has one (possibly empty) list for each."""
        ...

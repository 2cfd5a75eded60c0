"""Language models: one small protocol and its backends."""

from spade_envs.models.base import (
    ChatModel,
    Completion,
    Conversation,
    Message,
    ModelError,
    Role,
    Sampling,
    ToolCall,
    ToolModel,
    ToolSchemas,
)
from spade_envs.models.load import check_spec, load_model

__all__ = [
    "ChatModel",
    "Completion",
    "Conversation",
    "Message",
    "ModelError",
    "Role",
    "Sampling",
    "ToolCall",
    "ToolModel",
    "ToolSchemas",
    "check_spec",
    "load_model",
]

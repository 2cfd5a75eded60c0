"""Between OpenAI's messages and what a chat template takes; between what a model writes and OpenAI's tool calls."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from typing import Any

from spade_envs.models.base import Message
from spade_envs.play import TOOLS_TEMPLATE

_ROLES = ("system", "user", "assistant", "tool")
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)


class BadRequest(ValueError):
    """A request that is not served; the message says what was expected."""


def read_messages(listed: Any) -> list[Message]:
    """Return the messages of a request with plain text contents and arguments as objects, as templates take them.

    Raises:
        BadRequest: if it is no list of messages.
    """
    if not isinstance(listed, list) or not listed:
        raise BadRequest("messages must be a list of at least one message")
    messages: list[Message] = []
    for number, given in enumerate(listed):
        role: Any = given.get("role") if isinstance(given, dict) else None
        role = "system" if role == "developer" else role
        if role not in _ROLES:
            raise BadRequest(
                f"messages[{number}]: expected an object with role {', '.join(_ROLES)}, got {given!r:.100}"
            )
        message: Message = {"role": role, "content": _text(given.get("content"), number)}
        if given.get("tool_calls"):
            message["tool_calls"] = [_call(call, number) for call in given["tool_calls"]]
        if role == "tool":
            message["tool_call_id"] = str(given.get("tool_call_id") or "")
        messages.append(message)
    return messages


def read_tools(listed: Any) -> list[dict[str, Any]]:
    """Return the tools of a request.

    Raises:
        BadRequest: if they are no list of function schemas.
    """
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise BadRequest("tools must be a list")
    for tool in listed:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadRequest(f'every tool must be {{"type": "function", "function": {{"name": …}}}}, got {tool!r:.100}')
    return listed


def _text(content: Any, number: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "".join(str(part.get("text") or "") for part in content)
    raise BadRequest(f"messages[{number}].content must be text, got {content!r:.100}")


def _call(call: Any, number: int) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadRequest(f"messages[{number}].tool_calls: expected functions with a name, got {call!r:.100}")
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:  # the model's own fault, shown to it as it was
            arguments = {"arguments": arguments}
    return {"id": str(call.get("id") or ""), "type": "function", "function": {**function, "arguments": arguments}}


def as_text(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
    """Return the conversation for a template without tools: schemas in the system message, calls and results as text.

    Results of one turn come in one user message, since templates want the roles to alternate.
    """
    found: list[Message] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            calls = [json.dumps({k: call["function"][k] for k in ("name", "arguments")}, ensure_ascii=False)
                     for call in message.get("tool_calls", ())]  # fmt: skip
            content = "\n".join([*filter(None, [content]), *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)])
        elif role == "tool":
            role, content = "user", f"<tool_response>\n{content}\n</tool_response>"
            if found and found[-1]["role"] == "user" and found[-1]["content"].endswith("</tool_response>"):
                content = f"{found.pop()['content']}\n{content}"
        found.append({"role": role, "content": content})
    if tools:
        listing = TOOLS_TEMPLATE.replace("{tools}", "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
        if found and found[0]["role"] == "system":
            found[0] = {"role": "system", "content": f"{found[0]['content']}\n\n{listing}"}
        else:
            found.insert(0, {"role": "system", "content": listing})
    return found


def read_reply(text: str, tools: Sequence[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of a reply without its calls, and the calls in OpenAI's form.

    Calls stand between ``<tool_call>`` tags (Hermes, Qwen), or the whole reply is one JSON object or list of them with
    ``name`` and ``arguments`` or ``parameters`` (Llama 3). What is malformed, or calls no offered tool, stays text.
    """
    if not tools:
        return text, []
    names = {tool["function"]["name"] for tool in tools}
    whole = _calls(text.strip(), names)
    if whole:
        return "", whole
    calls: list[dict[str, Any]] = []

    def take(match: re.Match[str]) -> str:
        found = _calls(match.group(1), names)
        calls.extend(found)
        return "" if found else match.group(0)

    rest = _CALL.sub(take, text)
    return (rest.strip() if calls else text), calls


def _calls(text: str, names: set[str]) -> list[dict[str, Any]]:
    if text[:1] not in ("{", "["):
        return []
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return []
    values = values if isinstance(values, list) else [values]
    found = []
    for value in values:
        if not isinstance(value, dict) or value.get("name") not in names:
            return []
        arguments = value.get("arguments", value.get("parameters", {}))
        if not isinstance(arguments, dict):
            return []
        function = {"name": value["name"], "arguments": json.dumps(arguments, ensure_ascii=False)}
        found.append({"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function})
    return found

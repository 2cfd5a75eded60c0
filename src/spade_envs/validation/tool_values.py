"""Arguments for tool calls, harvested from what a player sees: instructions, schemas, results of earlier calls."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TOKEN = re.compile(
    r"(?P<mail>[\w.+-]+@[\w-]+\.[\w.]+)"
    r"|(?P<stamp>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\b\d{1,2}:\d\d\b)"
    r"|[\"'`“‘](?P<quoted>[^\"'`”’\n]{1,80})[\"'`”’]"
    r"|(?P<path>/?\b[\w-]+(?:[/.][\w-]+)+)"
    r"|(?P<number>(?<![\w.])-?\d+(?:\.\d+)?(?![\w-]))"
    r"|(?P<id>#?\b[A-Za-z]*[-_]?\d[\w-]*|\b[A-Za-z]+(?:[_-][A-Za-z0-9]+)+)"
    r"|(?P<name>\b[A-Z][\w'-]*(?: (?:of |the )?[A-Z][\w'-]*)*)"
    r"|(?P<word>\b[A-Za-z]{3,})"
)
_RANK = {"mail": 0, "stamp": 0, "quoted": 0, "path": 1, "number": 1, "id": 0, "name": 1, "word": 3}
_KEYED = re.compile(r"\b([A-Za-z_]{2,30})\s*[:=]\s*([^\s,;|(){}\[\]]{1,60})")
_WORDS = re.compile(r"[a-z]+|\d+")
_STOP = frozenset(
    ["the", "and", "for", "with", "then", "please", "its", "this", "that", "from", "into", "has", "have", "are", "was"]
)
_MAX_TEXT, _MAX_VALUES = 8_000, 400
_PER_PARAMETER, _PER_TOOL = 10, 32
_NEW, _TOLD = 3, 2  # what a value gains from standing in the newest instruction, in any


class Values:
    """Scalars that were seen, each with the names it was seen under and where.

    Ranks are small for what is likelier: values under the parameter's own name, then those of the instructions.
    """

    def __init__(self) -> None:
        self.version = 0
        self.texts: list[str] = []
        self._values: dict[tuple[str, Any], tuple[set[str], list[int]]] = {}  # (type, value) -> names, [rank]
        self._instructions = ""
        self._newest = ""

    def instruction(self, text: str) -> None:
        """Read an instruction; the newest counts most."""
        if text and text not in self._instructions:
            self._newest = text.lower()
            self._instructions += "\n" + self._newest
            self.read(text)

    def read(self, text: str) -> None:
        """Read an observation: JSON in it by key, all else by token."""
        text = text[:_MAX_TEXT]
        self.texts.append(text)
        decoded = _json(text)
        if decoded is not None:
            self._walk(decoded, "")
            if len(self.texts) < 3 or not text.lstrip().startswith(("{", "[")):
                self._tokens(text)
        else:
            self._tokens(text)

    def add(self, value: Any, name: str = "", rank: int = 0) -> None:
        """Add one scalar."""
        if type(value) is str:
            value = value.strip()
        if value is None or value == "" or len(self._values) >= _MAX_VALUES:
            return
        key = (type(value).__name__, value)
        if key not in self._values:
            self._values[key] = ({name} if name else set(), [rank])
            self.version += 1
            return
        names, ranks = self._values[key]
        if name and name not in names and len(names) < 8:
            names.add(name)
            self.version += 1
        ranks[0] = min(ranks[0], rank)

    def knows(self, value: Any) -> bool:
        """Whether a value was seen, as a value of its own or inside a text."""
        if value is None or type(value) is bool or (type(value), value) in ((str, ""),):
            return True
        if isinstance(value, list):
            return all(self.knows(item) for item in value)
        if isinstance(value, dict):
            return all(self.knows(item) for item in value.values())
        if any((kind, value) in self._values for kind in ("str", "int", "float")):
            return True
        words = _WORDS.findall(str(value).lower())
        return bool(words) and any(_contains(text, str(value).lower(), words) for text in self.texts)

    def numbers(self) -> list[float]:
        """All numbers seen, those written as text too."""
        found = [float(value) for kind, value in self._values if kind in ("int", "float")]
        return sorted({number for number in found if abs(number) < 1e12})[:60]

    def candidates(self, parameter: str, schema: Mapping[str, Any]) -> list[Any]:
        """Values for a parameter, the likeliest first."""
        enum = schema.get("enum")
        if isinstance(enum, list) and enum:
            plain = [item for item in enum if _plain(item)]
            told = [item for item in plain if str(item).lower() in self._newest]
            return list(_distinct([*told, *plain]))[:_PER_PARAMETER]
        given = [schema[key] for key in ("default", "example", "const") if key in schema]
        given += schema["examples"] if isinstance(schema.get("examples"), list) else []
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "boolean":
            return [True, False]
        if kind == "array":
            return self._arrays(parameter, schema)
        if kind == "object":
            return [*given, *self._objects(schema)][:4]
        if kind == "null":
            return [None]
        ranked = []
        for order, ((_, value), (names, ranks)) in enumerate(self._values.items()):
            for fitting in _as_type(value, kind if isinstance(kind, str) else ""):
                taken_apart = 3 if type(value) is str and type(fitting) is int else 0
                ranked.append((self._rank(parameter, value, names) + ranks[0] + taken_apart, order, fitting))
        ranked.sort(key=lambda entry: entry[:2])
        found = [item for item in given if _plain(item)] + [value for _, _, value in ranked]
        if not found:
            found = [{"integer": 1, "number": 1.0}.get(kind if isinstance(kind, str) else "", "x")]
        return list(_distinct(found))[:_PER_PARAMETER]

    def calls(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Sets of arguments for a tool, the likeliest first: required parameters alone, then optional ones as well."""
        properties = parameters.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        listed = parameters.get("required")
        required = [key for key in listed if key in properties] if isinstance(listed, list) else list(properties)
        found: list[dict[str, Any]] = list(self._combine(required, properties, _PER_TOOL))
        optional = [key for key in properties if key not in required]
        for key in optional[:3]:
            found += self._combine([*required, key], properties, _PER_TOOL // 2)
        if len(optional) > 1:
            found += self._combine([*required, *optional][:6], properties, _PER_TOOL // 2)
        return found

    def _combine(self, names: Sequence[str], properties: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
        options = []
        for name in names:
            schema = properties[name] if isinstance(properties[name], Mapping) else {}
            options.append(list(enumerate(self.candidates(name, schema))))
        while _product(options) > 4_000:
            longest = max(options, key=len)
            longest.pop()
        combined = sorted(itertools.product(*options), key=lambda entry: sum(rank for rank, _ in entry))[:most]
        return [dict(zip(names, (value for _, value in entry), strict=True)) for entry in combined]

    def _rank(self, parameter: str, value: Any, names: Iterable[str]) -> int:
        rank = 6
        if any(_alike(parameter, name) for name in names):
            rank -= 4
        text = str(value).lower()
        if re.search(rf"(?<![\w.-]){re.escape(text)}(?![\w-])", self._newest):
            rank -= _NEW
        elif text in self._instructions:
            rank -= _TOLD
        return rank

    def _arrays(self, parameter: str, schema: Mapping[str, Any]) -> list[Any]:
        inner = schema.get("items")
        items = self.candidates(parameter, inner if isinstance(inner, Mapping) else {})
        told = [item for item in items if str(item).lower() in self._newest]
        pairs = [list(pair) for pair in itertools.combinations(items[:4], 2)]
        return list(_distinct([told, *([item] for item in items[:4]), *pairs, items, []]))[:_PER_PARAMETER]

    def _objects(self, schema: Mapping[str, Any]) -> list[Any]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return [{}]
        return self._combine(list(properties)[:6], properties, 3)

    def _walk(self, value: Any, name: str, depth: int = 0) -> None:
        if depth > 6:
            return
        if isinstance(value, dict):
            for key, item in list(value.items())[:100]:
                if isinstance(item, dict | list) or not key.isidentifier():
                    self.add(key, name)
                elif isinstance(item, int | float):
                    self.add(key, name, 2)
                self._walk(item, str(key), depth + 1)
        elif isinstance(value, list):
            for item in value[:100]:
                self._walk(item, name, depth + 1)
        else:
            self.add(value, name)
            if isinstance(value, str) and " " in value:
                self._tokens(value)

    def _tokens(self, text: str) -> None:
        for key, value in _KEYED.findall(text):
            self.add(_number(value.strip(".'\"")), key)
        for match in itertools.islice(_TOKEN.finditer(text), 200):
            kind = match.lastgroup or "word"
            token = match[kind].strip(".")
            if kind in ("word", "name") and token.lower() in _STOP:
                continue
            self.add(_number(token) if kind == "number" else token, "", _RANK[kind])
            if kind == "name" and " " in token:
                for part in token.split():
                    self.add(part, "", 2)
            if kind == "name":
                self.add(token.lower(), "", 3)
            if kind == "id" and token.startswith("#"):
                self.add(_number(token[1:]))


def _json(text: str) -> Any:
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> Any:
    if re.fullmatch(r"-?\d{1,15}", text) and (text == "0" or not text.lstrip("-").startswith("0")):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d{1,10}", text) else text


def _as_type(value: Any, kind: str) -> list[Any]:
    """A value as a parameter's type takes it; nothing if it does not fit."""
    if kind == "integer":
        if type(value) is str and (match := re.fullmatch(r"[A-Za-z#_-]*(\d{1,12})", value)):
            return [int(match[1])]
        return [value] if type(value) is int else [int(value)] if type(value) is float and value == int(value) else []
    if kind == "number":
        return [value] if type(value) in (int, float) else []
    if kind == "string":
        return [str(value)] if type(value) in (str, int, float) else []
    return [value]


def _alike(parameter: str, name: str) -> bool:
    """Whether a value seen under ``name`` may go into ``parameter``: "order_id" takes "id", "order" takes "orders"."""
    left, right = parameter.lower(), name.lower()
    if left == right or left.rstrip("s") == right.rstrip("s"):
        return True
    parts, others = set(_WORDS.findall(left)), {word.rstrip("s") for word in _WORDS.findall(right)}
    return bool({word.rstrip("s") for word in parts} & others)


def _contains(text: str, whole: str, words: Sequence[str]) -> bool:
    text = text.lower()
    if re.search(rf"(?<![a-z0-9]){re.escape(whole)}(?![a-z0-9])", text):
        return True
    return len(words) > 1 and all(re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) for word in words)


def _product(options: Sequence[Sequence[Any]]) -> int:
    total = 1
    for option in options:
        total *= max(1, len(option))
    return total


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _distinct(values: Iterable[Any]) -> Iterable[Any]:
    seen = set()
    for value in values:
        key = (type(value).__name__, json.dumps(value, sort_keys=True, default=str))
        if key not in seen:
            seen.add(key)
            yield value

r"""Policies that know nothing of the task. If one of them wins, the environment pays for nothing.

A policy is *contentless* when what it says cannot be an honest guess (empty text, noise, "done"), else a *guess*: in
a small answer space a guess wins now and then, which is no fault. (Echoing the prompt is a guess where the prompt
lists the answers.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from zlib import crc32

from spade_envs.validation import options as read
from spade_envs.validation.occurrence import bare
from spade_envs.validation.rollout import Policy, Rollout

FORMS: dict[str, str] = {"raw": "%s", "boxed": "\\boxed{%s}", "answer": "<answer>%s</answer>"}
DONE = "<answer>done</answer>"
CONSTANTS = ("0", "1", "2", "yes", "no", "True", "A")

EXOTIC = "\\boxed{²}"
"""Superscripts and the like are digits to str.isdigit() and none to int(): players hardly ever send them."""
NOISE = (
    "",
    " ",
    "\n\n",
    "\x00",
    "a\x00b",
    "\\boxed{}",
    "\\boxed{",
    "}{",
    "\\boxed{\\boxed{}}",
    "{0.__class__}",
    "%s%n{}",
    "\\boxed{" + "9" * 400 + "}",
    "\\boxed{nan}",
    "\\boxed{1e999}",
    "-1",
    "None",
    "\U0001f600 \u202e\u0301 ﬁ ²",
    EXOTIC,
    "\\boxed{0}",
    "\\boxed{-1}",
    "\\boxed{1/0}",
    "\\boxed{[}",
    "[1, 2]",
    "go",
    "<answer></answer>",
    '<tool_call>{"name": 1',
    '<tool_call>{"name": "no_such_tool", "arguments": {"x": null}}</tool_call>',
    "<tool_call>[]</tool_call>",
    "'; DROP TABLE x; --",
)
"""Malformed actions, each a single step."""
NO_ANSWER = frozenset(("", " ", "\n\n", "\x00", "\\boxed{}", "\\boxed{", "}{", "\\boxed{nan}", "\\boxed{1e999}"))
"""Actions that are no answer to anything."""
GUESSABLE = frozenset(("-1", "None", "\\boxed{0}", "\\boxed{-1}", "[1, 2]", "go"))
"""Actions that may be right by chance."""
HUGE = ("x" * 200_000, "\\boxed{" + "7" * 20_000 + "}")
"""Very long actions."""


@dataclass(frozen=True, slots=True)
class KnowNothing:
    """A named know-nothing policy."""

    name: str
    description: str  # completes "a player that …"
    contentless: bool
    policy: Policy


def wrap(text: str, form: str) -> str:
    """Put ``text`` into an answer form, unless it carries one already."""
    if "\\boxed{" in text or "<answer>" in text or "<tool_call>" in text:
        return text
    return FORMS[form] % text


def _constant(text: str) -> Policy:
    return lambda rollout: text


def _echo(rollout: Rollout) -> str:
    return rollout.observation


def _noise(rollout: Rollout) -> str:
    return NOISE[(5 + 3 * len(rollout.turns)) % len(NOISE)]


Choice = Callable[[Rollout], str | None]
"""What a guessing policy answers, before it is put into an answer form; None: nothing to say."""


def _guesser(form: str, choose: Choice) -> Policy:
    def policy(rollout: Rollout) -> str | None:
        text = choose(rollout)
        return None if text is None else wrap(text, form)

    return policy


def _pick(among: Sequence[str], *key: object) -> str:
    """Pick by a hash of ``key``: as good as random here, and much cheaper than a generator for each turn."""
    return among[crc32(repr(key).encode()) % len(among)]


def _last_number(rollout: Rollout) -> str:
    found = read.numbers(rollout.observation)
    return found[-1 - len(rollout.turns) % len(found)] if found else "1"


def _first_number(rollout: Rollout) -> str:
    found = read.numbers(rollout.first[: read.MAX_READ])
    return found[len(rollout.turns) % len(found)] if found else "1"


def _last_word(rollout: Rollout) -> str:
    found = read.words(rollout.first[-read.MAX_READ :])
    return found[-1 - len(rollout.turns) % len(found)] if found else "x"


def _news(rollout: Rollout) -> str:
    """A number, or else a word, that the latest observation says for the first time."""
    if not rollout.turns:
        return "1"
    before = " ".join((rollout.first, *rollout.actions, *(turn.observation for turn in rollout.turns[:-1])))
    for tokens in (read.numbers, read.words):
        known = set(tokens(before))
        if fresh := [token for token in tokens(rollout.observation) if token not in known]:
            return max(fresh, key=len)
    return "1"


def _marked(rollout: Rollout) -> str | None:
    return read.marked(rollout.first)


def _longest(rollout: Rollout) -> str | None:
    return read.longest_choice(rollout.first)


def _prompt_word(rollout: Rollout) -> str:
    found = read.words(rollout.first)
    return _pick(found, rollout.seed, len(rollout.turns)) if found else "x"


def _told(rollout: Rollout) -> str:
    return read.told(rollout.observation) or read.told(rollout.first) or "unknown"


def _example(rollout: Rollout) -> str:
    found = (rollout.turns and read.examples(rollout.observation)) or read.examples(rollout.first)
    return found[len(rollout.turns) % len(found)] if found else "example"


def _filled(rollout: Rollout) -> str:
    """The prompt's own pattern with numbers for placeholders: "row,col" becomes "2,0", "buy N" becomes "buy 3"."""
    turn = len(rollout.turns)
    patterns = read.patterns(rollout.first)
    places = count()
    return read.PLACEHOLDER.sub(
        lambda _: str(crc32(f"{turn} {next(places)}".encode()) % 5), patterns[turn % len(patterns)] if patterns else ""
    )


def _number(rollout: Rollout) -> str:
    """Numbers from 1 to 100, the same for all seeds, so that seeds can be compared."""
    return str(1 + crc32(str(len(rollout.turns)).encode()) % 100)


def _explore(rollout: Rollout) -> str:
    turn = len(rollout.turns)
    offered = list(read.options(rollout.observation) or read.options(rollout.first) or ("look",))
    offered += [offer for seen in rollout.turns[-3:-1] for offer in read.options(seen.observation)]
    verb = _pick(offered, "verb", rollout.seed, turn)
    nouns = read.words(rollout.observation)[-40:]
    if nouns and crc32(f"two {rollout.seed} {turn}".encode()) % 5 < 3:
        return f"{verb.split()[0]} {_pick(nouns, 'noun', rollout.seed, turn)}"
    return verb


def _option(index: int) -> Choice:
    def choose(rollout: Rollout) -> str | None:
        offered = read.options(rollout.first)
        return offered[index] if index < len(offered) else None

    return choose


def _random_option(rollout: Rollout) -> str | None:
    offered = read.options(rollout.observation) or read.options(rollout.first)
    return _pick(offered, rollout.seed, len(rollout.turns)) if offered else None


GENERAL = ("empty", "repeat", "echo", "noise", "done")
"""Names of the policies whose actions are no proper moves."""


def general_policies() -> list[KnowNothing]:
    """Policies that do not depend on the program's answer form."""
    return [
        KnowNothing("empty", "sends empty text", True, _constant("")),
        KnowNothing("repeat", "repeats a sentence without an answer", True, _constant("I do not know.")),
        KnowNothing("echo", "sends the observation back", False, _echo),
        KnowNothing("noise", "sends malformed text", True, _noise),
        KnowNothing("done", f"sends {DONE}", True, _constant(DONE)),
    ]


def guessing_policies(
    forms: Sequence[str], solutions: Mapping[int, Sequence[str]], observations: Sequence[str], *, hidden: bool = False
) -> list[KnowNothing]:
    """Policies that guess, in each of the answer ``forms``.

    Args:
        forms: names of :data:`FORMS` to wrap guesses in.
        solutions: ``solution()`` by seed, where the program offers it; gives the most common answer and answers to
            other seeds' puzzles as further guesses.
        observations: first observations of several seeds; what they offer decides which guesses make sense.
        hidden: whether equal observations want different answers, so that play has to reveal something.
    """
    offered = max(len(read.options(text)) for text in observations)
    worded = not solutions or any(text.isalpha() for solution in solutions.values() for text in map(bare, solution))
    chosen = any(read.longest_choice(text) for text in observations)
    singled = any(read.marked(text) for text in observations)
    patterned = any(read.patterns(text) for text in observations)
    guesses: list[KnowNothing] = []
    for form in forms:
        suffix = "" if len(forms) == 1 else f"_{form}"

        def add(name: str, description: str, choose: Choice, form: str = form, suffix: str = suffix) -> None:
            guesses.append(KnowNothing(name + suffix, description, False, _guesser(form, choose)))

        add("last_number", "answers with the last number it saw", _last_number)
        add("first_number", "answers with the first number of the prompt", _first_number)
        if worded:
            add("last_word", "answers with the last word of the prompt", _last_word)
        add("news", "answers with what the latest observation says for the first time", _news)
        if chosen:
            add("longest", "picks the longest of the offered choices", _longest)
        if singled:
            add("marked", "picks the choice that carries a mark", _marked)
        add("prompt_word", "answers with words of the prompt", _prompt_word)
        add("told", 'answers with what the observation calls "the answer"', _told)
        add("example", "sends the prompt's own example", _example)
        add("random_number", "sends random numbers", _number)
        if patterned:
            add("filled", "fills numbers into the prompt's own pattern", _filled)
        if offered:
            add("random_option", "picks one of the offered options at random", _random_option)
            add("explore", "combines offered words at random", _explore)
        for index in range(min(offered, 3)):
            add(f"option_{index + 1}", f"always picks offered option {index + 1}", _option(index))
        if not solutions:
            for constant in CONSTANTS:
                add(f"constant_{constant}", f"always answers {constant!r}", _always(constant))
        else:
            if common := _most_common(solutions):
                add("common", f"plays {list(common)!r:.120} whatever the seed", _sequence(common))
            add("foreign", "plays the solution of another seed", _foreign(solutions))
            if hidden and (parts := _parts(solutions)):
                add("parts", "tries the parts of solutions one by one", _sequence(parts))
            if (middle := _middle(solutions)) is not None:
                add("middle", f"always answers {middle}, the middle of the solutions", _sequence((middle,)))
    return guesses


def _most_common(solutions: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    """The solution that most seeds share, empty if no two seeds share one."""
    counts: dict[tuple[str, ...], int] = {}
    for solution in solutions.values():
        counts[tuple(solution)] = counts.get(tuple(solution), 0) + 1
    common = max(counts, key=lambda solution: counts[solution])
    return common if counts[common] > 1 else ()


def _parts(solutions: Mapping[int, Sequence[str]]) -> list[str]:
    """Words of the solutions of all seeds, or letters where the solutions are single words; each once, at most 40.

    The same for every seed, and worth playing only where the first observation hides something.
    """
    texts = [text for solution in solutions.values() for text in solution]
    words = [word for text in texts for word in read.words(text)]
    single = all(len(text.split()) == 1 for text in texts)
    return list(dict.fromkeys("".join(words).lower() if single else words))[:40]


def _middle(solutions: Mapping[int, Sequence[str]]) -> str | None:
    """The median of numeric solutions: the guess to which "higher" and "lower" say most."""
    single = [solution[0] for solution in solutions.values() if len(solution) == 1]
    numbers = sorted(int(text) for text in single if text.isascii() and text.isdigit() and len(text) < 10)
    return str(numbers[len(numbers) // 2]) if len(numbers) > 2 else None


def _always(text: str) -> Choice:
    return lambda rollout: text


def _sequence(actions: Sequence[str]) -> Choice:
    return lambda rollout: actions[len(rollout.turns) % len(actions)] if actions else None


def _foreign(solutions: Mapping[int, Sequence[str]]) -> Choice:
    order = list(solutions)

    def choose(rollout: Rollout) -> str | None:
        start = order.index(rollout.seed) + 1 if rollout.seed in solutions else rollout.seed
        actions = solutions[order[start % len(order)]]
        return actions[len(rollout.turns) % len(actions)] if actions else None

    return choose


def tool_policy(tools: Sequence[Mapping[str, Any]]) -> KnowNothing:
    """A policy that calls every tool once with dummy arguments and then says that it is done."""
    calls = [tool_call(tool) for tool in tools]

    def policy(rollout: Rollout) -> str:
        turn = len(rollout.turns)
        return calls[turn] if turn < len(calls) else DONE

    return KnowNothing("tool_sweep", "calls every tool with dummy arguments, then says it is done", True, policy)


def tool_call(tool: Mapping[str, Any]) -> str:
    """A ``<tool_call>`` with dummy values for all parameters of an OpenAI function schema."""
    function = tool.get("function", tool)
    parameters = function.get("parameters") or {}
    properties = parameters.get("properties") or {} if isinstance(parameters, Mapping) else {}
    arguments = {name: _dummy(schema) for name, schema in properties.items()} if isinstance(properties, Mapping) else {}
    return f"<tool_call>{json.dumps({'name': function.get('name', ''), 'arguments': arguments})}</tool_call>"


def _dummy(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "x"
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    values = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    kind = schema.get("type")
    return values.get(kind, "x") if isinstance(kind, str) else "x"

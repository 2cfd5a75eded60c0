"""The grammar of the small programs that the embedded nano model is warm-started on.

A :class:`Spec` says what a program asks for; :func:`source_pieces` writes it as Python, piece by piece, and
:mod:`spade_train.nano.tokenizer` makes one token of every piece that is not a number or a word. Five families:

========= =====================================================================================================
numbers   a list of digits goes through one to three operations
words     the same for words of the document
lookup    words of the document have values; look some up, then zero to two operations
running   a number is kept over several turns; the last turn pays the share of right answers
guess     find a number with "Higher" and "Lower"
========= =====================================================================================================

Every program follows the contract of generated programs, states what its checker checks, and has a ``hint()``
that carries a bounded part of the answer: the first half of several symbols, a range for one symbol.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

SKILLS = ("numbers", "words", "lookup", "running", "guess")

_ANIMALS = (
    "ant bat bee cat cod cow crab crow deer dog dove duck eel elk emu fly fox frog goat gull hare hawk hen horse "
    "jay kid lamb lark lion lynx mole moth mouse mule newt otter owl pig pony ram rat seal sheep snail stork swan "
    "toad trout wasp wolf"
)
_PLANTS = "apple ash birch cedar elm fern fig hazel ivy lime maple oak pear pine plum reed"

DESIGN_WORDS = tuple(_ANIMALS.split())
"""Words of documents, and so of the programs that the designer writes."""

HELD_OUT_WORDS = tuple(_PLANTS.split())
"""Words of the held-out set only. The player meets them in its warm start, the designer never does."""

WORDS = DESIGN_WORDS + HELD_OUT_WORDS

MODULI = (5, 6, 7, 8, 9, 10)
RANGES = (8, 10, 12, 15, 20, 25, 30)
LOWS = (0, 5, 10, 20, 30, 40, 50)
"""Sizes of the range of the guessing game, and where it may begin."""

_END = " for v in x]\n"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on a list: the phrase of the statement and the line of ``solution``.

    ``{k}`` stands for the operation's number, ``{m}`` for the modulus, ``{top}`` for the modulus minus one.
    """

    phrase: tuple[str, ...]
    code: tuple[str, ...]
    minimum: int  # shortest list on which it does something
    shrinks: bool = False
    modular: bool = False

    @property
    def numbered(self) -> bool:
        """Whether the operation has a number of its own."""
        return "{k}" in self.code


OPERATIONS = {
    "reverse": Operation((", reverse them",), ("        x = x[::-1]\n",), 2),
    "sort": Operation((", sort them",), ("        x = sorted(x)\n",), 3),
    "rotate": Operation((", rotate left by", " {k}"), ("        x = x[", "{k}", ":] + x[:", "{k}", "]\n"), 2),
    "swap": Operation((", swap the ends",), ("        x = x[-1:] + x[1:-1] + x[:1]\n",), 2),
    "drop": Operation((", drop the first",), ("        x = x[1:]\n",), 3, shrinks=True),
    "skip": Operation((", keep every second",), ("        x = x[::2]\n",), 3, shrinks=True),
    "add": Operation(
        (", add", " {k}", " modulo {m}"), ("        x = [(v + ", "{k}", ") % ", "{m}", _END), 1, modular=True
    ),
    "double": Operation(
        (", double them", " modulo {m}"), ("        x = [v * 2 % ", "{m}", _END), 1, modular=True
    ),
    "mirror": Operation((", subtract each from", " {top}"), ("        x = [", "{top}", " - v" + _END), 1, modular=True),
    "cumulate": Operation(
        (", take running sums", " modulo {m}"),
        ("        x = [sum(x[:i + 1]) % ", "{m}", " for i in range(len(x))]\n"),
        2,
        modular=True,
    ),
    "total": Operation((", total", " modulo {m}"), ("        x = [sum(x) % ", "{m}", "]\n"), 2, modular=True),
}  # fmt: skip

WORD_OPERATIONS = ("reverse", "sort", "rotate", "swap", "drop", "skip")
NUMBER_OPERATIONS = tuple(OPERATIONS)

UPDATES = {
    "add": (", add each number and tell it", " + v"),
    "subtract": (", subtract each number and tell it", " - v"),
    "double": (", double it, add each number and tell it", " * 2 + v"),
}
"""How the running family changes its number: phrase of the statement, tail of the expression."""

TOPICS = (*OPERATIONS, "subtract")
"""What a document may be about, beside its words."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One program of the grammar."""

    skill: str
    title: str  # the word in the class name
    operations: tuple[tuple[str, int], ...] = ()  # name and number (0 if it has none)
    size: int = 0  # numbers taken, words taken, words looked up
    modulus: int = 10  # values are below it; for "guess" the size of the range
    turns: int = 1
    words: tuple[str, ...] = ()
    update: str = ""
    low: int = 0  # smallest number of the guessing game

    @property
    def high(self) -> int:
        """Largest number of the guessing game."""
        return self.low + self.modulus - 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operations."""
        return tuple(name for name, _ in self.operations)

    @property
    def answers(self) -> int:
        """Symbols in the answer of one episode (the running family: one each turn)."""
        if self.skill == "running":
            return self.turns
        length = self.size
        for name in self.names:
            length = 1 if name == "total" else length - 1 if name == "drop" else length
            length = (length + 1) // 2 if name == "skip" else length
        return 1 if self.skill == "guess" else length

    @property
    def difficulty(self) -> float:
        """A rough a-priori difficulty, from 1 up, that the warm start uses to set how often its player errs."""
        if self.skill == "guess":
            return 1.5 + 6.0 * max(0.0, 1 - float(2**self.turns - 1) / self.modulus)
        if self.skill == "running":
            return 1 + 0.5 * self.turns + (self.update == "double")
        hard = {"cumulate": 1.5, "total": 0.25 * self.size, "sort": 0.5, "add": 0.5, "double": 0.5, "mirror": 0.3}
        cost = 0.5 * self.size + sum(hard.get(name, 0.0) for name in self.names)
        return cost + 1.3 * max(0, len(self.operations) - 1 + (self.skill == "lookup"))


def reserved(spec: Spec) -> bool:
    """Whether the combination is kept for the held-out set: one in five, by hash, never warm-started on.

    With two or more operations it is their sequence that is kept, else operation, size, modulus and turns.
    """
    key = [spec.skill, *spec.names, spec.update]
    if len(spec.operations) < 2:
        key += [str(spec.size), str(spec.modulus), str(spec.turns), str(spec.low)]
    return int(hashlib.sha256(":".join(key).encode()).hexdigest()[:8], 16) % 5 == 0


def statement_pieces(spec: Spec) -> list[str]:
    """The task in words, without the data."""
    if spec.skill == "guess":
        bounds = [*_spaced(spec.low), " to", *_spaced(spec.high)]
        return ["Guess a number from", *bounds, " in", f" {spec.turns}", " tries"]
    if spec.skill == "running":
        phrase = UPDATES[spec.update][0]
        return ["Keep a number", phrase, f" modulo {spec.modulus}", ",", f" {spec.turns}", " turns"]
    opening, unit = {
        "numbers": ("Take", " numbers"),
        "words": ("Take", " words"),
        "lookup": ("Look up", " words"),
    }[spec.skill]
    pieces = [opening, f" {spec.size}", unit if spec.size > 1 else " word"]
    for name, number in spec.operations:
        pieces += _fill(OPERATIONS[name].phrase, number, spec.modulus)
    return pieces


def statement(spec: Spec) -> str:
    """The task in words, without the data."""
    return "".join(statement_pieces(spec))


CLASS_END = "Env(TextEnv):\n"
_WORDS = '    words = "'
_WORDS_END = '".split()\n\n'
_RESET = "    def reset(self, seed=None):\n        super().reset(seed)\n"
_STATE_NUMBERS = _RESET + "        self.x = [self.rng.randrange("
_TIMES = ") for _ in range("
_TAKE_NUMBERS = ')]\n        return "Take'
_STATE_WORDS = _RESET + "        self.x = self.rng.sample(self.words, "
_TAKE_WORDS = ')\n        return "Take'
_STATE_BOOK = _RESET + "        self.book = {w: self.rng.randrange("
_ASKED = ") for w in self.words}\n        self.x = self.rng.sample(self.words, "
_LOOK_UP = ')\n        book = " ".join(f"{w} {v}" for w, v in self.book.items())\n        return "Look up'
_SOLUTION = "\n    def solution(self):\n"
_DATA_NUMBERS = ': " + " ".join(map(str, self.x)), {}\n' + _SOLUTION + "        x = self.x\n"
_DATA_WORDS = ': " + " ".join(self.x), {}\n' + _SOLUTION + "        x = self.x\n"
_DATA_BOOK = ': " + book + " ? " + " ".join(self.x), {}\n' + _SOLUTION + "        x = [self.book[w] for w in self.x]\n"
_ANSWER = '        return " ".join(map(str, x))\n\n    def hint(self):\n        x = '
_STEP = (
    "\n    def step(self, action):\n"
    "        right = self.answer(action) == self.solution()\n"
    '        return "Done.", float(right), True, False, {}\n'
)
_HINT_HALF = 'self.solution().split()\n        return "It starts with " + " ".join(x[:len(x) // 2])\n' + _STEP
_HINT_RANGE = 'int(self.solution()) // 3 * 3\n        return f"It is from {x} to {x + 2}"\n' + _STEP
_KEEP_STATE = ")]\n        self.y = self.x[:1]\n        for v in self.x[1:]:\n            self.y.append((self.y[-1]"
_KEEP_MODULO = ") % "
_KEEP = ')\n        self.right = 0\n        return "Keep a number'
_KEEP_BODY = (
    ': start " + str(self.x[0]) + " next " + str(self.x[1]), {}\n'
    + _SOLUTION
    + "        return [str(v) for v in self.y[self.turn + 1:]]\n\n"
    "    def hint(self):\n"
    '        return "It starts with " + " ".join(map(str, self.y[1:(len(self.y) + 1) // 2]))\n\n'
    "    def step(self, action):\n"
    "        self.turn += 1\n"
    "        self.right += self.answer(action) == str(self.y[self.turn])\n"
    "        if self.turn == "
)
_KEEP_DONE = ':\n            return "Done.", self.right / '
_KEEP_NEXT = ', True, False, {}\n        return "next " + str(self.x[self.turn + 1]), 0.0, False, False, {}\n'
_STATE_GUESS = _RESET + "        self.x = self.rng.randint("
_GUESS = ')\n        return "Guess a number from'
_GUESS_BODY = (
    ':", {}\n' + _SOLUTION + "        return str(self.x)\n\n"
    "    def hint(self):\n"
    "        x = self.x // 4 * 4\n"
    '        return f"It is from {x} to {x + 3}"\n\n'
    "    def step(self, action):\n"
    "        self.turn += 1\n"
    "        guess = self.answer(action)\n"
    "        right = guess == self.solution()\n"
    '        way = "Higher" if guess in map(str, range(self.x)) else "Lower"\n'
    "        return way, float(right), right or self.turn == "
)
_GUESS_END = ", False, {}\n"

LEXEMES = tuple(
    dict.fromkeys(
        piece
        for piece in (
            CLASS_END, _WORDS, _WORDS_END, _STATE_NUMBERS, _TIMES, _TAKE_NUMBERS, _STATE_WORDS, _TAKE_WORDS,
            _STATE_BOOK, _ASKED, _LOOK_UP, _DATA_NUMBERS, _DATA_WORDS, _DATA_BOOK, _ANSWER, _HINT_HALF, _HINT_RANGE,
            _KEEP_STATE, _KEEP_MODULO, _KEEP, _KEEP_BODY, _KEEP_DONE, _KEEP_NEXT, _STATE_GUESS, _GUESS, _GUESS_BODY,
            _GUESS_END, "class ", "Word", "Book", "Keep", "Guess", "Take", "Look up", "Keep a number",
            "Guess a number from", " numbers", " word", " words", " in", " tries", " turns", " start", " next", "next",
            " ?", "Higher", "Lower", "Done.", "It starts with", "It is from", " to",
            *(topic.capitalize() for topic in TOPICS),
            *(f" modulo {modulus}" for modulus in MODULI),
            *(phrase for phrase, _ in UPDATES.values()), *(code for _, code in UPDATES.values()),
            *(piece for operation in OPERATIONS.values() for piece in operation.phrase + operation.code),
        )
        if "{k}" not in piece and "{m}" not in piece and "{top}" not in piece
    )
)  # fmt: skip
"""Every piece of programs, statements, observations and hints that is not a number or a word of a document."""


def class_pieces(spec: Spec) -> list[str]:
    """The class line: a word of the document, what is done, ``Env``."""
    parts = {"numbers": [], "words": ["Word"], "lookup": ["Book"], "running": ["Keep"], "guess": ["Guess"]}[spec.skill]
    parts = [*parts, *(name.capitalize() for name in spec.names), spec.update.capitalize()]
    return ["class ", spec.title.capitalize(), *filter(None, parts), CLASS_END]


def source_pieces(spec: Spec) -> list[str]:
    """The program as pieces: lexemes, words, digits."""
    said, modulus = statement_pieces(spec)[1:], list(_number(spec.modulus))
    pieces = class_pieces(spec)
    if spec.skill == "guess":
        bounds = [*_number(spec.low), ",", *_spaced(spec.high)]
        return [*pieces, _STATE_GUESS, *bounds, _GUESS, *said, _GUESS_BODY, str(spec.turns), _GUESS_END]
    if spec.skill == "running":
        pieces += [_STATE_NUMBERS, *modulus, _TIMES, str(spec.turns + 1), _KEEP_STATE, UPDATES[spec.update][1]]
        pieces += [_KEEP_MODULO, *modulus, _KEEP, *said, _KEEP_BODY]
        return [*pieces, str(spec.turns), _KEEP_DONE, str(spec.turns), _KEEP_NEXT]
    if spec.words:
        pieces += [_WORDS, *(f" {word}" for word in spec.words), _WORDS_END]
    if spec.skill == "lookup":
        pieces += [_STATE_BOOK, *modulus, _ASKED, str(spec.size), _LOOK_UP, *said, _DATA_BOOK]
    elif spec.skill == "words":
        pieces += [_STATE_WORDS, str(spec.size), _TAKE_WORDS, *said, _DATA_WORDS]
    else:
        pieces += [_STATE_NUMBERS, *modulus, _TIMES, str(spec.size), _TAKE_NUMBERS, *said, _DATA_NUMBERS]
    for name, number in spec.operations:
        pieces += _fill(OPERATIONS[name].code, number, spec.modulus)
    return [*pieces, _ANSWER, _HINT_RANGE if spec.answers == 1 else _HINT_HALF]


def source(spec: Spec) -> str:
    """The program as Python source."""
    return "".join(source_pieces(spec))


def _fill(pieces: Sequence[str], number: int, modulus: int) -> list[str]:
    """Put numbers into a phrase or a line of code."""
    values = {"{k}": str(number), "{m}": str(modulus), "{top}": str(modulus - 1)}
    return ["".join(values.get(part, part) for part in re.split(r"(\{\w+\})", piece)) for piece in pieces]


def _number(value: int) -> tuple[str, ...]:
    """The tokens of a number without a space before it; ten is one token."""
    return ("10",) if value == 10 else tuple(str(value))


def _spaced(value: int) -> tuple[str, ...]:
    """The tokens of a number after a space."""
    digits = str(value)
    return (f" {digits[0]}", *digits[1:])

"""Games of the grammar played in this process, and the imperfect player whose traces warm-start the model.

:class:`Game` repeats what the program of a :class:`~spade_train.nano.grammar.Spec` does, draw for draw, without
running generated code; the tests hold it against the program in the sandbox.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from spade_train.nano.grammar import WORDS, Spec, statement

_List = list[Any]

_APPLY: dict[str, Callable[[_List, int, int], _List]] = {
    "reverse": lambda x, k, m: x[::-1],
    "sort": lambda x, k, m: sorted(x),
    "rotate": lambda x, k, m: x[k:] + x[:k],
    "swap": lambda x, k, m: x[-1:] + x[1:-1] + x[:1],
    "drop": lambda x, k, m: x[1:],
    "skip": lambda x, k, m: x[::2],
    "add": lambda x, k, m: [(v + k) % m for v in x],
    "double": lambda x, k, m: [v * 2 % m for v in x],
    "mirror": lambda x, k, m: [m - 1 - v for v in x],
    "cumulate": lambda x, k, m: [sum(x[: i + 1]) % m for i in range(len(x))],
    "total": lambda x, k, m: [sum(x) % m],
}

_UPDATE: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda y, v, m: (y + v) % m,
    "subtract": lambda y, v, m: (y - v) % m,
    "double": lambda y, v, m: (y * 2 + v) % m,
}


class Game:
    """One episode of a spec's program with ``seed``; ``observation`` is what the player sees now."""

    def __init__(self, spec: Spec, seed: int) -> None:
        rng = random.Random(seed)
        self._x: _List
        self.spec, self.turn, self.right, self.done, self.return_ = spec, 0, 0, False, 0.0
        said = statement(spec)
        if spec.skill == "guess":
            self._secret = rng.randint(spec.low, spec.high)
            self._answers = [str(self._secret)]
            self.observation = f"{said}:"
            return
        if spec.skill == "running":
            self._x = [rng.randrange(spec.modulus) for _ in range(spec.turns + 1)]
            self._kept = self._x[:1]
            for value in self._x[1:]:
                self._kept.append(_UPDATE[spec.update](self._kept[-1], value, spec.modulus))
            self._answers = [str(value) for value in self._kept[1:]]
            self.observation = f"{said}: start {self._x[0]} next {self._x[1]}"
            return
        self._book = {w: rng.randrange(spec.modulus) for w in spec.words} if spec.skill == "lookup" else {}
        if spec.skill == "numbers":
            self._x = [rng.randrange(spec.modulus) for _ in range(spec.size)]
        else:
            self._x = rng.sample(spec.words, spec.size)
        shown = " ".join(map(str, self._x))
        if self._book:
            shown = " ".join(f"{w} {v}" for w, v in self._book.items()) + " ? " + shown
        self.observation = f"{said}: {shown}"
        self._answers = [" ".join(map(str, self._run(spec.operations)))]

    @property
    def answer(self) -> str:
        """The right answer of this turn."""
        return self._answers[min(self.turn, len(self._answers) - 1)]

    @property
    def hint(self) -> str:
        """What the program's ``hint()`` says at the start."""
        if self.spec.skill == "guess":
            low = self._secret // 4 * 4
            return f"It is from {low} to {low + 3}"
        symbols = self._answers if self.spec.skill == "running" else self.answer.split()
        if len(symbols) == 1:
            low = int(symbols[0]) // 3 * 3
            return f"It is from {low} to {low + 2}"
        return "It starts with " + " ".join(symbols[: len(symbols) // 2])

    def step(self, action: str) -> None:
        """Play one turn."""
        right = action.strip() == self.answer
        self.turn += 1
        self.right += right
        if self.spec.skill == "guess":
            self.done = right or self.turn == self.spec.turns
            below = action.strip() in map(str, range(self._secret))
            self.observation, self.return_ = ("Higher" if below else "Lower"), float(right)
            return
        self.done = self.turn == self.spec.turns
        if self.done:
            self.observation, self.return_ = "Done.", self.right / self.spec.turns
        else:
            self.observation = f"next {self._x[self.turn + 1]}"

    def careless_answer(self) -> str:
        """A systematic mistake: skip the last operation, answer with what was shown, forget the kept number."""
        spec = self.spec
        if spec.skill == "running":
            return str(self._x[self.turn + 1])
        result = self._run(spec.operations[:-1])
        if spec.skill == "lookup" and not spec.operations:
            result = list(self._book.values())[: spec.size]
        return " ".join(map(str, result[: max(1, spec.answers)]))

    def _run(self, operations: tuple[tuple[str, int], ...]) -> _List:
        x: _List = [self._book[word] for word in self._x] if self._book else list(self._x)
        for name, number in operations:
            x = _APPLY[name](x, number, self.spec.modulus)
        return x


class Player:
    """Plays a game the way a beginner does, so that training has something left to improve.

    Without the hint it is careless throughout an episode with a probability that grows with difficulty, and slips on
    single symbols now and then. With the hint it plays right. In the guessing game it halves the range most of the
    time and otherwise picks any number that is left.
    """

    def __init__(self, game: Game, rng: random.Random, *, hinted: bool) -> None:
        self._game, self._rng, self._hinted = game, rng, hinted
        spec = game.spec
        self._low, self._high = spec.low, spec.high
        if hinted and spec.skill == "guess":
            start = int(game.hint.split()[3])
            self._low, self._high = max(self._low, start), min(self._high, start + 3)
        self._careless = not hinted and rng.random() < min(0.5, 0.1 + 0.08 * (spec.difficulty - 1))
        self._last = 0

    def reply(self) -> str:
        """The answer of this turn."""
        game, rng = self._game, self._rng
        if game.spec.skill == "guess":
            if game.turn and game.observation == "Higher":
                self._low = self._last + 1
            elif game.turn:
                self._high = self._last - 1
            halve = rng.random() < (0.9 if self._hinted else 0.5)
            self._last = (self._low + self._high) // 2 if halve else rng.randint(self._low, self._high)
            return str(self._last)
        if self._careless:
            return game.careless_answer()
        if not self._hinted and rng.random() < 0.04:
            return self._slip(game.answer)
        return game.answer

    def _slip(self, answer: str) -> str:
        symbols = answer.split()
        index = self._rng.randrange(len(symbols))
        symbols[index] = str(self._rng.randrange(10)) if symbols[index].isdigit() else self._rng.choice(WORDS)
        return " ".join(symbols)

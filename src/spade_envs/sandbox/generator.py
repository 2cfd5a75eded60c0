"""Randomness and time for generated code: everything comes from the running instance's own generator.

Module-level ``random`` functions, unseeded ``random.Random()`` objects, ``numpy.random`` functions and ``uuid4`` all
draw from the generator that :func:`use_generator` installed last (the worker installs the instance's own before every
operation). So an episode depends on its seed alone: not on the other instances, the process, or the time of day.
"""

from __future__ import annotations

import _strptime  # type: ignore[import-not-found]  # noqa: F401 - strptime() imports it late
import copy
import datetime as _datetime
import random as _random
import time as _time
import uuid as _uuid
from collections.abc import Callable
from typing import Any

from spade_envs.sandbox.types import RANDOM_WORDS, Nudge

NOW = 1_735_689_600.0
"""The time that generated code sees, in seconds since 1970: always 2025-01-01 00:00 UTC."""


_Core: Any = _random.Random.__base__
_seed_core = _Core.seed
_POOR_WORDS = 64  # of a poor stream; what follows is as the seed says
_POOR_SHARES = (0.15, 0.4, 0.7)  # of words that are not 0
_POOR = (0x12024448, 0x24008811, 0x4C019032)
"""States whose draws are 2**28, 2**29 and 2**30: below half of any range, so that nothing is drawn twice for them."""


class Current:
    """Holds the generator of the running instance, and what of its random words is changed."""

    __slots__ = ("nudge", "rng")

    def __init__(self, rng: _random.Random) -> None:
        self.rng = rng
        self.nudge: Nudge | None = None


current = Current(_random.Random(0))
"""The one there is; the worker's innermost loop sets its attributes itself."""


def use_generator(rng: _random.Random) -> None:
    """Make ``rng`` the source of all randomness of generated code until the next call, none of it nudged."""
    current.rng = rng
    current.nudge = None


def current_generator() -> _random.Random:
    """Return the generator installed last."""
    return current.rng


# What belongs to an instance's episode besides its generator's state is kept on the generator itself, and goes where
# that goes: ``spade_entropy`` (a generator), ``spade_numpy`` (a RandomState) and, where random words are changed,
# ``spade_numbers`` (of its generators, by their seeds).


def numpy_state() -> Any:
    """Return the ``RandomState`` that the running instance seeded by ``numpy.random.seed``, or None."""
    return getattr(current.rng, "spade_numpy", None)


def set_numpy_state(state: Any) -> None:
    """Make ``state`` the running instance's, until its next episode."""
    current.rng.spade_numpy = state  # type: ignore[attr-defined]


def begin_episode(rng: Any, seed: int | None) -> None:
    """Seed an instance's generator; without a seed it goes on from where it is."""
    if seed is not None:
        if type(seed) is int:  # as Random.seed does it with an integer
            _seed_core(rng, seed)
            rng.gauss_next = None
        else:
            rng.seed(seed)
        rng.spade_entropy = rng.spade_numpy = None
        if current.nudge is not None:
            rng.spade_numbers = {}
            nudge(rng, _OWN)


_OWN = "own"


def nudge(rng: Any, seed: Any) -> None:
    """Change words of a freshly seeded generator, as :data:`current` says.

    Draws that a change does not concern give what they would have given, unless it makes the program draw more or fewer
    of them. A program that looks into its generator's state can tell that it was done.
    """
    assert current.nudge is not None
    kind, generator, word, variant = current.nudge
    numbers: dict[str, int] | None = getattr(current.rng, "spade_numbers", None)
    if numbers is None:  # an episode that was begun without a seed
        numbers = current.rng.spade_numbers = {}  # type: ignore[attr-defined]
    number = numbers.setdefault(seed if seed is _OWN else repr(seed), len(numbers))
    if number >= generator if kind == "poor" else number != generator:
        return
    _Core.getrandbits(rng, 32)  # words are made with the first draw after seeding
    words = list(_Core.getstate(rng))
    words[-1] = 0  # the next word
    if kind == "word":
        words[word] = _POOR[-1] if variant else 0
    elif kind == "tail":
        other = _random.Random(variant)
        words[word:RANDOM_WORDS] = [other.getrandbits(32) for _ in range(word, RANDOM_WORDS)]
    else:
        choice, share = _random.Random(variant * RANDOM_WORDS + number), _POOR_SHARES[variant % len(_POOR_SHARES)]
        words[:_POOR_WORDS] = [
            _POOR[int(3 * drawn / share)] if (drawn := choice.random()) < share else 0 for _ in range(_POOR_WORDS)
        ]
    _Core.setstate(rng, tuple(words))


def copy_generator(rng: Any) -> _random.Random:
    """Return an independent copy of an instance's generator."""
    made: Any = _random.Random(0)
    made.setstate(rng.getstate())
    made.spade_numpy = copy.deepcopy(getattr(rng, "spade_numpy", None))
    entropy_ = getattr(rng, "spade_entropy", None)
    made.spade_entropy = None if entropy_ is None else copy_generator(entropy_)
    return made  # type: ignore[no-any-return]


def entropy(bits: int) -> int:
    """Return bits for what would ask the operating system for a seed: fixed by the episode, and a stream of its own.

    Drawing them from the instance's generator would shift the numbers that a program gets after seeding it.
    """
    return _entropy_of(current.rng).getrandbits(bits)


def _entropy_of(rng: Any) -> _random.Random:
    found: _random.Random | None = getattr(rng, "spade_entropy", None)
    if found is None:
        found = rng.spade_entropy = _random.Random(copy_generator(rng).getrandbits(64))
    return found


def dispatch(name: str) -> Callable[..., Any]:
    """Return a function that calls method ``name`` of the current generator."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(current.rng, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def seed(a: Any = None, version: int = 2) -> None:
    """Seed the current generator; without a seed it goes on from where it is."""
    if a is not None:
        _entropy_of(current.rng)  # what is unseeded follows the episode's seed, not this one
        current.rng.seed(a, version)
        if current.nudge is not None:
            nudge(current.rng, a)


class Random(_random.Random):
    """``random.Random`` whose unseeded objects are seeded from the instance's :func:`entropy`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Random:
        # the C constructor would ask the operating system for a seed
        return super().__new__(cls, 0)  # type: ignore[call-arg]

    def __init__(self, x: Any = None) -> None:
        super().__init__(entropy(64) if x is None else x)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seed; without a seed, from the instance's entropy."""
        super().seed(entropy(64) if a is None else a, version)
        if current.nudge is not None:
            nudge(self, a)

    def __reduce__(self) -> Any:
        # the inherited form would call cls(), which draws entropy
        return _blank, (type(self),), self.getstate()


def _blank(cls: type[Random]) -> Random:
    return cls.__new__(cls)


Random.__module__ = "random"


def uuid4() -> _uuid.UUID:
    """Return a random UUID made of the instance's entropy."""
    return _uuid.UUID(int=entropy(128), version=4)


# -- time: it stands still ----------------------------------------------------------------------------
_MOMENT = _datetime.datetime(2025, 1, 1, tzinfo=_datetime.UTC)


class _Datetime(_datetime.datetime):
    @classmethod
    def now(cls, tz: _datetime.tzinfo | None = None) -> Any:
        moment = _MOMENT if tz is None else _MOMENT.astimezone(tz)
        return cls(*moment.timetuple()[:6], tzinfo=tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls(*_MOMENT.timetuple()[:6])

    @classmethod
    def today(cls) -> Any:
        return cls(*_MOMENT.timetuple()[:6])


class _Date(_datetime.date):
    @classmethod
    def today(cls) -> Any:
        return cls(*_MOMENT.timetuple()[:3])


for _kind, _name in ((_Datetime, "datetime.datetime"), (_Date, "datetime.date")):
    _kind.__name__ = _name  # repr() of a date shows the name of its type
    _kind.__qualname__ = _name.partition(".")[2]
    _kind.__module__ = "datetime"

TIME: dict[str, Any] = {
    "time": lambda: NOW,
    "time_ns": lambda: int(NOW) * 10**9,
    "perf_counter": lambda: 0.0,
    "perf_counter_ns": lambda: 0,
    "monotonic": lambda: 0.0,
    "process_time": lambda: 0.0,
    "sleep": lambda seconds=0: None,
    "gmtime": lambda seconds=NOW: _time.gmtime(NOW if seconds is None else seconds),
    "localtime": lambda seconds=NOW: _time.gmtime(NOW if seconds is None else seconds),
    "strftime": lambda template, moment=None: _time.strftime(template, moment or _time.gmtime(NOW)),
}
"""Wrappers for the ``time`` module."""

DATETIME: dict[str, Any] = {"datetime": _Datetime, "date": _Date}
"""Replacements for names of the ``datetime`` module."""

RANDOM: dict[str, Any] = {"Random": Random, "seed": seed}
"""Replacements for names of the ``random`` module; the rest dispatches by name."""

"""The space of texts that environments speak: any Unicode string of bounded length.

``gymnasium.spaces.Text`` lists every character it accepts, prints that list in its ``repr`` and walks over the
characters of each text in Python. :class:`UnicodeText` bounds the length alone. It also works in
``AsyncVectorEnv(shared_memory=True)``, where ``Text`` keeps returning the observations of the first moment.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, overload

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space, unflatten
from gymnasium.vector.utils import (
    batch_differing_spaces,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from numpy.typing import NDArray

PRINTABLE = "".join(map(chr, range(32, 127)))
"""The characters of sampled texts: printable ASCII."""

_SAMPLE_LENGTH = 64
_PADDING = -1  # no code point; fills a flattened text up to the maximal length


class UnicodeText(spaces.Text):
    """Strings of ``min_length`` to ``max_length`` characters, both inclusive, of any characters.

    Samples are printable ASCII and at most 64 characters long (longer only where ``min_length`` asks for it), so
    sampling stays cheap for large bounds. Masks work as in ``gymnasium.spaces.Text``, over printable ASCII.

    Example:
        >>> UnicodeText(100)
        UnicodeText(0, 100)
        >>> "¿Qué? 数" in UnicodeText(100)
        True
    """

    def __init__(self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=min_length, charset=PRINTABLE, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a random text; ``mask`` and ``probability`` are those of ``gymnasium.spaces.Text.sample``."""
        if mask is not None or probability is not None:
            return str(super().sample(mask, probability))
        longest = min(self.max_length, max(self.min_length, _SAMPLE_LENGTH))
        length = int(self.np_random.integers(self.min_length, longest + 1))
        return self.np_random.integers(32, 127, size=length, dtype=np.uint8).tobytes().decode("ascii")

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string within the bounds."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def clip(self, text: str) -> str:
        """Return ``text`` cut, or padded with blanks, to the bounds."""
        return text[: self.max_length].ljust(self.min_length)

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )


def _batch_differing(several: Sequence[UnicodeText]) -> spaces.Tuple[Any]:
    return spaces.Tuple([UnicodeText(space.max_length, min_length=space.min_length) for space in several])


def _flatten_space(space: UnicodeText) -> spaces.Box:
    return spaces.Box(low=_PADDING, high=0x10FFFF, shape=(space.max_length,), dtype=np.int32)


def _flatten(space: UnicodeText, x: str) -> NDArray[np.int32]:
    cells = np.full(space.max_length, _PADDING, dtype=np.int32)
    cells[: len(x)] = _code_points(x)
    return cells


def _unflatten(space: UnicodeText, x: NDArray[np.int32]) -> str:
    return _text(x[x != _PADDING])


class SharedTexts(Sequence[str]):
    """A live view of ``n`` texts in shared memory: one int32 length, then the code points, for each.

    ``AsyncVectorEnv`` keeps this one object and returns deep copies of it, which are plain tuples of strings.
    """

    def __init__(self, cells: NDArray[np.int32]) -> None:
        self._cells = cells  # (n, 1 + max_length)

    def __len__(self) -> int:
        return len(self._cells)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._cells[index]
        return _text(row[1 : 1 + row[0]])

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return repr(tuple(self))


def _create_shared_memory(space: UnicodeText, n: int = 1, ctx: ModuleType = multiprocessing) -> Any:
    return ctx.Array("i", n * (1 + space.max_length))


def _read_from_shared_memory(space: UnicodeText, shared_memory: Any, n: int = 1) -> SharedTexts:
    return SharedTexts(np.frombuffer(shared_memory.get_obj(), dtype=np.int32).reshape(n, 1 + space.max_length))


def _write_to_shared_memory(space: UnicodeText, index: int, value: str, shared_memory: Any) -> None:
    cells = np.frombuffer(shared_memory.get_obj(), dtype=np.int32).reshape(-1, 1 + space.max_length)[index]
    cells[1 : 1 + len(value)] = _code_points(value)
    cells[0] = len(value)


def _code_points(text: str) -> NDArray[np.int32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.int32)


def _text(code_points: NDArray[np.int32]) -> str:
    return code_points.astype("<i4").tobytes().decode("utf-32-le", "surrogatepass")


# What gymnasium dispatches on the type of a space. Batching, iterating, concatenating and empty arrays of ``Text``
# fit as they are (a batch is a tuple of strings); what goes by single characters does not.
_dispatched: list[tuple[Any, Callable[..., Any]]] = [
    (batch_differing_spaces, _batch_differing),
    (flatten_space, _flatten_space),
    (flatten, _flatten),
    (unflatten, _unflatten),
    (create_shared_memory, _create_shared_memory),
    (read_from_shared_memory, _read_from_shared_memory),
    (write_to_shared_memory, _write_to_shared_memory),
]
for _generic, _function in _dispatched:
    _generic.register(UnicodeText, _function)

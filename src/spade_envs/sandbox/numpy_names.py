"""numpy for programs that opted in: no constructor over foreign memory, no files, no process-wide random state.

numpy is memory-unsafe from Python, so these wrappers stop accidents; only the process jail contains an attacker.
"""

from __future__ import annotations

from typing import Any

from .generator import entropy, numpy_state, set_numpy_state
from .guards import Refused, replace_type, stand_in


def contents(module: str, listed: frozenset[str]) -> dict[str, Any]:
    """Return the names of ``numpy``, ``numpy.random`` or ``numpy.linalg`` that are handed out."""
    import numpy as np
    import numpy.linalg
    import numpy.random  # numpy loads both late, and nothing can be loaded in the jail

    if module == "numpy.random":
        return _random_contents(listed)
    real: Any = np.linalg if module == "numpy.linalg" else np
    found = {name: getattr(real, name) for name in sorted(listed) if hasattr(real, name)}
    if module == "numpy":
        found["ndarray"] = stand_in("ndarray", _is_array, lambda other: issubclass(other, np.ndarray))
        for kind in (np.ndarray, np.memmap, np.recarray, np.matrix):
            replace_type(kind, found["ndarray"])
        found["loadtxt"] = _loadtxt
        for name in ("array", "asarray"):
            found[name] = _array_maker(getattr(np, name))
    return found


def _is_array(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray)


def _array_maker(make: Any) -> Any:
    def array(value: Any, dtype: Any = None, **options: Any) -> Any:
        return make(value, dtype, **options)

    array.__name__ = make.__name__
    return array


def _loadtxt(lines: Any, dtype: Any = float, **options: Any) -> Any:
    """``numpy.loadtxt`` of a list of lines; anything else would be the name of a file."""
    import numpy as np

    if type(lines) not in (list, tuple) or any(type(line) is not str for line in lines):
        raise Refused("numpy.loadtxt takes a list of lines here; there are no files")
    return np.loadtxt(lines, dtype, **options)


def _random_contents(listed: frozenset[str]) -> dict[str, Any]:
    import numpy as np

    def fresh(seed: Any) -> Any:
        return entropy(64) if seed is None else seed

    def default_rng(seed: Any = None) -> Any:
        """``numpy.random.default_rng``; without a seed, one drawn from the current generator."""
        return np.random.default_rng(fresh(seed))

    def random_state(seed: Any = None) -> Any:
        """``numpy.random.RandomState``; without a seed, one drawn from the current generator."""
        return np.random.RandomState(fresh(seed) % 2**32 if seed is None else seed)

    def seed_current(seed: Any = None) -> None:
        """Give the running instance a state of its own, from which numpy's module-level functions then draw."""
        set_numpy_state(None if seed is None else np.random.RandomState(seed))

    def dispatch(name: str) -> Any:
        # until the program seeds, each call is seeded from the instance's own entropy
        def call(*args: Any, **kwargs: Any) -> Any:
            state = numpy_state()
            if state is None:
                state = np.random.RandomState(entropy(32))
            return getattr(state, name)(*args, **kwargs)

        call.__name__ = name
        return call

    generator = stand_in(
        "Generator",
        lambda value: isinstance(value, np.random.Generator),
        lambda other: issubclass(other, np.random.Generator),
    )
    own = {"default_rng": default_rng, "RandomState": random_state, "seed": seed_current, "Generator": generator}
    return {name: own.get(name) or dispatch(name) for name in sorted(listed)}

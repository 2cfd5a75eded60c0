"""The C library, for system calls that Python has no function for.

``ctypes`` is imported on first use: interpreters without it import this module too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes


@lru_cache(maxsize=1)
def libc() -> ctypes.CDLL:
    """Return the C library that this process has loaded already; :func:`last_error` tells its errors."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def last_error() -> int:
    """Return ``errno`` as the last call through :func:`libc` left it."""
    import ctypes

    return ctypes.get_errno()

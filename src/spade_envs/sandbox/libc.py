"""The C library, for system calls that Python has no function for."""

from __future__ import annotations

import ctypes
from functools import lru_cache


@lru_cache(maxsize=1)
def libc() -> ctypes.CDLL:
    """Return the C library that this process has loaded already; :func:`ctypes.get_errno` tells its errors."""
    return ctypes.CDLL(None, use_errno=True)

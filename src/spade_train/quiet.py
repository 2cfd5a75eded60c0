"""Two warnings that TRL 1.16 gives everybody who trains as we do, and that nobody can do anything about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_trl() -> Iterator[None]:
    """Keep back, while the context lasts, that ``rollout_func`` is experimental (its contract is tested here), and that
    TRL asks transformers a question by an old name, at every generation."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rollout_func.*experimental.*", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*", category=FutureWarning)
        yield

"""One sandbox for all validation tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spade_envs.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made

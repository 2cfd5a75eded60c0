"""Fixtures for tests of many parts: one sandbox for the session, a memory in a temporary folder."""

import pytest

from spade_envs.memory import Memory
from spade_envs.sandbox import Limits, Sandbox


@pytest.fixture(scope="session")
def sandbox():
    limits = Limits(soft_seconds=0.3, hard_seconds=1.0, quarantine_after=2)
    with Sandbox(limits, minimum_isolation="static") as opened:
        yield opened


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory") as opened:
        yield opened

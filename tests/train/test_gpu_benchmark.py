"""The prepared script for a GPU machine goes the same way on CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


def test_tiny_run_prints_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
    spec = importlib.util.spec_from_file_location("benchmark_gpu", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.main(["--tiny"]) == 0
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert rows[2:] == [
        "model", "load", "step", "generation", "update", "neither",
        "peak while sampling", "estimated", "peak of the update", "estimated",
    ]  # fmt: skip

"""What ``spade doctor`` says about the sandbox on systems that lack what Linux has."""

import platform

import pytest
import typer

from spade_envs.cli import doctor as command
from spade_envs.sandbox import doctor


@pytest.mark.parametrize(("system", "level"), [("Darwin", "partial"), ("Windows", "static")])
def test_the_advice_names_every_way_out(monkeypatch, system, level):
    monkeypatch.setattr(platform, "system", lambda: system)
    advice = doctor._advice(level)
    for part in (system, "Linux container", "spade-envs[wasi]", f'minimum_isolation="{level}"'):
        assert part in advice


def test_the_command_prints_it(monkeypatch, capsys):
    facts = command.collect()
    facts["sandbox"] |= {"level": "static", "advice": "accept less", "wasi": "wasmtime not installed"}
    monkeypatch.setattr(command, "collect", lambda: facts)
    with pytest.raises(typer.Exit) as end:
        command.doctor()
    assert end.value.exit_code == 1
    shown = capsys.readouterr().out
    assert "accept less" in shown
    assert "wasmtime not installed" in shown

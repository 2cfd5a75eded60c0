"""``spade stats --compact``."""

from __future__ import annotations

import json
from pathlib import Path

from cli_programs import spade

from spade_envs.memory import Memory


def test_statistics_stay_when_plays_become_sums(memory: Path, tmp_path: Path) -> None:
    folder = str(memory)
    before = json.loads(spade("stats", "--memory", folder, "--json", home=tmp_path).stdout)
    after = json.loads(spade("stats", "--compact", "--memory", folder, "--json", home=tmp_path).stdout)
    assert after.pop("compacted")["plays_folded"] == 6
    assert after == before
    with Memory.open(memory) as store:
        store.evict(0)
    text = spade("stats", "--compact", "--drop-archived", "--memory", folder, home=tmp_path).stdout
    assert "1 sources dropped" in text


def test_compacting_makes_no_memory_and_needs_to_be_asked_for(memory: Path, tmp_path: Path) -> None:
    done = spade("stats", "--compact", "--memory", str(tmp_path / "none"), home=tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / "none").exists()
    assert spade("stats", "--drop-archived", "--memory", str(memory), home=tmp_path).returncode == 2

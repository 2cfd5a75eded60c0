"""What an import does with each program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pool_programs import FREE, QUICK, bring, held, program

from spade_envs.contract import TextEnv
from spade_envs.memory import Memory
from spade_envs.pools import import_pool, open_pool
from spade_envs.record import source_id
from spade_envs.validation import lanes
from spade_envs.validation.report_log import ReportLog, configuration_key


def _pool(folder: Path, **programs: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, source in programs.items():
        (folder / f"{name}.py").write_text(source)
    return folder


def test_refusals_and_duplicates_are_said(tmp_path: Path) -> None:
    memory = tmp_path / "m"
    bring(_pool(tmp_path / "one", a=program(2)), memory)
    outcomes = bring(
        _pool(tmp_path / "two", a=program(2) + "\n\n", b=FREE, c=program(3), d=program(3), e="x = 1\n", f=FREE), memory
    )
    assert [(one.status, one.cause) for one in outcomes] == [
        ("duplicate", "duplicate"),
        ("refused", "malformed"),
        ("admitted", ""),
        ("duplicate", "duplicate"),
        ("refused", "no_code"),
        ("duplicate", "duplicate"),
    ]
    assert outcomes[0].id == source_id(program(2))
    assert "spade/Multiple2" in outcomes[0].reason
    assert "c.py" in outcomes[3].reason
    assert len(held(memory)) == 2


def test_near_duplicates_on_request(tmp_path: Path) -> None:
    pool = _pool(tmp_path / "pool", a=program(2), b=program(2).replace("self.b", "self.second"))
    assert [one.status for one in bring(pool, tmp_path / "m1")] == ["admitted", "admitted"]
    outcomes = bring(pool, tmp_path / "m2", similar=0.85)
    assert [one.status for one in outcomes] == ["admitted", "duplicate"]
    assert outcomes[1].id == outcomes[0].id
    assert "overlap 1.00" in outcomes[1].reason


def test_licence_and_generator_of_those_without(tmp_path: Path) -> None:
    rows = [{"code": program(2), "licence": "MIT", "model": "m1"}, {"code": program(3)}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bring(tmp_path / "a.jsonl", tmp_path / "m", licence="CC0-1.0", generator="m2")
    found = {stored.record.name: stored.record for stored in held(tmp_path / "m")}
    assert (found["Multiple2Env"].licence, found["Multiple2Env"].generator) == ("MIT", "m1")
    assert (found["Multiple3Env"].licence, found["Multiple3Env"].generator) == ("CC0-1.0", "m2")


def test_a_hint_that_gives_the_answer_away_is_left_out(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"TextEnv": TextEnv}
    exec(program(2), namespace)
    played = namespace["Multiple2Env"]()
    played.reset(QUICK.seeds[0])
    rows = [
        {"code": program(2), "hint": f"The answer is {played.solution()}."},
        {"code": program(3), "hint": "Multiply, then add."},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcomes = bring(tmp_path / "a.jsonl", tmp_path / "m")
    assert [one.status for one in outcomes] == ["admitted", "admitted"]
    found = {stored.record.name: stored.record for stored in held(tmp_path / "m")}
    assert found["Multiple2Env"].hint == ""
    assert "names the answer" in found["Multiple2Env"].meta["hint_refused"]
    assert found["Multiple3Env"].hint == "Multiply, then add."


def test_numpy_by_permission_only(tmp_path: Path) -> None:
    source = "import numpy as np\n" + program(2).replace(
        "self.rng.randint(100, 999)", "int(np.abs(self.rng.randint(1, 99)))"
    )
    pool = _pool(tmp_path / "pool", a=source, b=program(3))
    assert [one.cause for one in bring(pool, tmp_path / "m1")] == ["policy", ""]
    assert [one.status for one in bring(pool, tmp_path / "m2", allow=("numpy",))] == ["admitted", "admitted"]
    assert {stored.record.name: stored.record.allow for stored in held(tmp_path / "m2")} == {
        "Multiple2Env": ("numpy",),
        "Multiple3Env": (),
    }


def test_contradictions_with_the_memory_are_warned_of(tmp_path: Path) -> None:
    bring(_pool(tmp_path / "one", a=program(2)), tmp_path / "m")
    wrong = program(2).replace("+ self.b)", "- self.b)")
    (outcome,) = bring(_pool(tmp_path / "two", a=wrong), tmp_path / "m")
    assert outcome.status == "admitted"
    assert [finding.probe for finding in outcome.report.findings if finding.probe == "contradiction"]
    record = next(stored.record for stored in held(tmp_path / "m") if stored.record.id == outcome.id)
    assert any(finding["probe"] == "contradiction" for finding in record.report["findings"])


class _Killed(Exception):
    pass


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_import_goes_on(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _pool(tmp_path / "pool", a=program(2), b=FREE, c=program(3), d=program(2), e=program(4))
    key = configuration_key(QUICK, ())
    with Memory.open(tmp_path / "m") as memory, ReportLog(tmp_path / "log.jsonl", key) as log:
        outcomes = import_pool(open_pool(pool), memory, jobs=jobs, isolation="static", config=QUICK, log=log)
        first = [next(outcomes) for _ in range(3)]
        with pytest.raises(_Killed):
            outcomes.throw(_Killed())  # type: ignore[attr-defined]
    assert [one.status for one in first] == ["admitted", "refused", "admitted"]
    run: list[str] = []
    validate = lanes.validate
    if jobs == 1:
        monkeypatch.setattr(
            lanes, "validate", lambda source, **options: run.append(source) or validate(source, **options)
        )
    with Memory.open(tmp_path / "m") as memory, ReportLog(tmp_path / "log.jsonl", key, resume=True) as log:
        outcomes = list(import_pool(open_pool(pool), memory, jobs=jobs, isolation="static", config=QUICK, log=log))
    assert [one.status for one in outcomes] == ["present", "refused", "present", "duplicate", "admitted"]
    assert run == ([program(4)] if jobs == 1 else [])
    assert len(held(tmp_path / "m")) == 3
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert sorted(line["label"] for line in lines) == ["a.py", "b.py", "c.py", "d.py", "e.py"]

"""``spade validate`` over pools, with repairs and contradictions, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

from cli_programs import PAYS_FOR_NOTHING, SUM, spade

FENCED = f"Here it is:\n```python\n{SUM}```\n"
WRONG_SUM = SUM.replace("self.a + self.b)", "self.a * self.b)")


def test_output_and_resume(tmp_path: Path) -> None:
    pool, reports = tmp_path / "pool", tmp_path / "reports.jsonl"
    pool.mkdir()
    (pool / "a.py").write_text(SUM)
    (pool / "b.py").write_text(PAYS_FOR_NOTHING)
    home = tmp_path / "home"
    done = spade("validate", str(pool), "-o", str(reports), "--jobs", "2", home=home)
    assert done.returncode == 1
    assert any(line.split()[:2] == ["know_nothing", "1"] for line in done.stdout.splitlines())
    before = reports.read_text()
    assert [json.loads(line)["admitted"] for line in before.splitlines()] == [True, False]
    assert "--resume" in spade("validate", str(pool), "-o", str(reports), home=home).stderr
    (pool / "c.py").write_text("import os\n")
    again = spade("validate", str(pool), "-o", str(reports), "--resume", "--quiet", home=home)
    assert "2 reports" in again.stderr
    assert again.stdout.splitlines()[-1].startswith("1 admitted, 2 refused")
    assert "admitted SumEnv" not in again.stdout
    assert reports.read_text().startswith(before)
    assert len(reports.read_text().splitlines()) == 3
    assert spade("validate", str(pool), "--resume", home=home).returncode == 2


def test_fix_writes_beside_the_original_and_says_what_it_did(tmp_path: Path) -> None:
    file = tmp_path / "sum.py"
    file.write_text(FENCED)
    done = spade("validate", str(tmp_path), "--fix", home=tmp_path / "home")
    fixed = tmp_path / "sum.fixed.py"
    assert done.returncode == 0
    assert f"{file}: mended: Markdown fence removed → {fixed}" in done.stdout
    assert file.read_text() == FENCED
    assert fixed.read_text() == SUM.lstrip()
    again = json.loads(spade("validate", str(tmp_path), "--fix", "--json", home=tmp_path / "home").stdout)
    assert [entry["fixed"] for entry in again] == [{"path": str(fixed), "mends": ["Markdown fence removed"]}]


def test_fix_says_so_where_there_is_nothing_that_it_can_mend(tmp_path: Path) -> None:
    file = tmp_path / "files.py"
    file.write_text("import os\n" + SUM)
    done = spade("validate", str(file), "--fix", home=tmp_path / "home")
    assert done.returncode == 1
    assert f"{file}: --fix found nothing that it can mend" in done.stdout
    file.write_text(SUM)
    assert "--fix" not in spade("validate", str(file), "--fix", home=tmp_path / "home").stdout


def test_fix_in_place(tmp_path: Path) -> None:
    file = tmp_path / "sum.py"
    file.write_text(FENCED)
    assert spade("validate", str(file), "--fix", "--in-place", home=tmp_path / "home").returncode == 0
    assert file.read_text() == SUM.lstrip()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["sum.py"]
    assert spade("validate", str(file), "--in-place", home=tmp_path / "home").returncode == 2


def test_entries_of_a_json_file_are_mended_by_number(tmp_path: Path) -> None:
    file = tmp_path / "pool.jsonl"
    file.write_text("".join(json.dumps({"code": code}) + "\n" for code in (SUM, FENCED)))
    assert spade("validate", str(file), "--fix", home=tmp_path / "home").returncode == 0
    assert (tmp_path / "pool.2.fixed.py").read_text() == SUM.lstrip()
    assert not (tmp_path / "pool.1.fixed.py").exists()
    assert spade("validate", str(file), "--fix", "--in-place", home=tmp_path / "home").returncode == 2


def test_contradictions_have_a_line_and_an_exit_code_by_demand(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SUM)
    (tmp_path / "b.py").write_text(WRONG_SUM)
    done = spade("validate", str(tmp_path), home=tmp_path / "home")
    assert done.returncode == 0
    assert any("contradiction:" in line and "a.py" in line for line in done.stdout.splitlines())
    assert spade("validate", str(tmp_path), "--strict-contradictions", home=tmp_path / "home").returncode == 1
    reports = json.loads(spade("validate", str(tmp_path), "--json", home=tmp_path / "home").stdout)
    (finding,) = [finding for finding in reports[1]["findings"] if finding["probe"] == "contradiction"]
    assert finding["severity"] == "warn"
    assert {"observation", "answer", "other_answer", "other"} <= finding["evidence"].keys()

"""The wheel holds all that is needed to run without the source tree, and says what it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

import spade_envs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = out.glob("*.whl")
    return path


def test_every_file_of_the_packages_is_in_it(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
    wanted = {line.removeprefix("src/") for line in tracked.splitlines()}
    assert wanted, "git lists no sources"
    assert wanted <= inside, sorted(wanted - inside)
    assert {name for name in inside if name.startswith("tests/")} == set()


def test_it_says_what_it_is(wheel: Path) -> None:
    assert wheel.name.startswith(f"spade_envs-{spade_envs.__version__}-")
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    text = archive.read(metadata).decode()
    assert "License-Expression: Apache-2.0" in text
    names = {Path(name).name for name in archive.namelist() if "/licenses/" in name}
    assert names == {"LICENSE", "THIRD_PARTY.md"}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == spade_envs.__version__
    assert re.search(
        r"^## \[(Unreleased|" + re.escape(spade_envs.__version__) + r")\]", (ROOT / "CHANGELOG.md").read_text(), re.M
    )


def test_it_works_without_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, with the libraries of this interpreter: commands, prompts, sandbox and weights are found."""
    place = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(place)
    code = (
        "import spade_envs, spade_train; assert spade_envs.__file__.startswith(sys.argv[1]), spade_envs.__file__\n"
        "from spade_envs.models.transformers import NANO_FOLDER; assert list(NANO_FOLDER.glob('*.safetensors'))\n"
        "from spade_envs.cli import main; sys.argv[1:] = ['validate', sys.argv[2]]; sys.exit(main())\n"
    )
    program = ROOT / "tests/data/llm_style/e01_mastermind.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1])\n{code}", str(place), str(program)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "1 admitted" in done.stdout + done.stderr

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "make_and_play.py",
            ["ChangeEnv: admitted True, proven True", "Hint: Take the coins", "return 1.0, terminated True"],
        ),
        ("vector_rollout.py", ["bisection wins 32 of 32 episodes"]),
    ],
)
def test_example(name, says):
    path = EXAMPLES / name
    assert len(path.read_text().splitlines()) < 60
    done = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for text in says:
        assert text in done.stdout

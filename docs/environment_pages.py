"""Write the pages of the example environments, docs/environments/*.md: `python docs/environment_pages.py`.

Their docstrings, in Gymnasium's form, come from the records; the episodes are played in the sandbox by `solution()`.
"""

from __future__ import annotations

from pathlib import Path

from spade_envs.designer import PromptSet
from spade_envs.designer.designer import validation_config
from spade_envs.env import make_class
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import default_sandbox
from spade_envs.validation import validate

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "environments"
SEED = 0
_SHOWN = "shown to designers by the prompt set"


def sources() -> list[tuple[str, str, PromptSet]]:
    """Source, where it is used, and the prompt set whose rules it is validated by."""
    sets = {name: PromptSet.load(name) for name in ("small", "games", "tool_use", "nano")}
    found = [(program, f"{_SHOWN} `{name}`", one) for name, one in sets.items() for program in one.shown_programs]
    pool = sorted((ROOT / "examples" / "seed_pool").glob("*.py"))
    used = "a program of `examples/seed_pool`, which `examples/recipes/smollm2_cpu.yaml` trains on"
    return [*found, *((path.read_text(encoding="utf-8"), used, sets["nano"]) for path in pool)]


def page(source: str, used: str, prompts: PromptSet) -> tuple[str, str]:
    """Return the file name and the page of one environment.

    Raises:
        ValueError: if validation refuses the program, or its solution does not win.
    """
    report = validate(source, sandbox=default_sandbox(), config=validation_config(prompts))
    if not (report.admitted and report.proven):
        raise ValueError(f"{report.name} is not admitted with proof: {[str(found) for found in report.findings]}")
    record = EnvironmentRecord.create(source, report.name, kind=prompts.kind, proven=True)
    docstring = (make_class(record).__doc__ or "").strip()
    text = (
        f"# {record.name}\n`{record.env_id}`: {used}.\n\n{docstring}\n\n## Source\n```python\n{source.strip()}\n```\n\n"
        f"## An episode\nSeed {SEED}, played by `solution()`.\n{episode(record)}"
    )
    return f"{record.name}.md", text


def episode(record: EnvironmentRecord) -> str:
    """Play ``record`` by its own solution and return the turns as Markdown."""
    with make_class(record)() as env:
        observation, _ = env.reset(seed=SEED)
        said = [_quoted("Environment", observation)]
        moves = env.unwrapped.solution()
        reward, ended = 0.0, False
        for move in [moves] if isinstance(moves, str) else moves or []:
            if ended:
                break
            observation, reward, terminated, truncated, _ = env.step(move)
            ended = terminated or truncated
            said += [_quoted("Agent", move), _quoted("Environment", observation)]
    if reward != 1.0:
        raise ValueError(f"the solution of {record.name} earns {reward}")
    return "".join(said) + f"\nReturn {reward:g}.\n"


def _quoted(who: str, text: str) -> str:
    return f"\n{who}:\n```text\n{text}\n```\n"


def pages() -> dict[str, str]:
    """All pages by file name, the index among them."""
    written = dict(page(*entry) for entry in sources())
    listed = "\n".join(name.removesuffix(".md") for name in written)
    written["index.md"] = (
        "# Example environments\nThey come with the project: small programs that designers are shown, and a pool to "
        "train on. Each page is the docstring of the environment's class, then its source, then an episode. They are "
        f"written by `python docs/environment_pages.py`.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    )
    return written


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER.relative_to(ROOT) / name)

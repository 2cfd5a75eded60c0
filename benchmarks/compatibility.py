"""Which environments of other collections run unchanged: python benchmarks/compatibility.py [FOLDER...] [--json]

For every file with an environment class (``reset`` and ``step``), a generator with a scorer, or an indexed data set:
is it accepted by the policy, and does it then do exactly what it does under plain CPython for the same seeds? Both
run in jailed children; the plain one twice, so that a program which differs from itself is not counted.

In scope is what uses no files, network, processes, threads or ``eval`` and needs no other package than numpy (which is
opted in to where it is imported). Bases of the collections themselves are replaced by short stand-ins of our own
(``collections/stand_ins``), wherever all the names that an import asks for are defined there. Without folders: the
programs of this repository.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from spade_envs.sandbox.allowlist import public_names
from spade_envs.sandbox.policy import check

HERE = Path(__file__).resolve().parent
CHILD = HERE / "collections" / "play.py"
OUTSIDE_MODULES = frozenset(
    (
        *("os", "pathlib", "shutil", "tempfile", "glob", "gzip", "sqlite3", "pickle"),
        *("socket", "ssl", "select", "requests", "urllib", "http", "httpx", "aiohttp", "webbrowser"),
        *("subprocess", "signal", "threading", "multiprocessing", "asyncio", "concurrent"),
        *("ctypes", "importlib", "inspect", "unittest"),
    )
)
OUTSIDE_CALLS = frozenset(("open", "eval", "exec", "compile", "__import__", "globals"))


@dataclass(slots=True)
class Result:
    """What became of one file."""

    folder: str
    path: str
    outside: str = ""  # what puts it out of scope
    packages: list[str] = field(default_factory=list)  # modules that are neither offered nor stood in for
    refusals: list[str] = field(default_factory=list)
    verdict: str = ""  # identical, different, not deterministic, not run
    detail: str = ""

    @property
    def in_scope(self) -> bool:
        return not self.outside and not self.packages

    @property
    def accepted(self) -> bool:
        return not self.refusals


@lru_cache(maxsize=1)
def stand_ins() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the sources of the stand-ins and the names they define."""
    found = {}
    for path in sorted((HERE / "collections" / "stand_ins").glob("*.py")):
        source = path.read_text()
        body = ast.parse(source).body
        names = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        names |= {node.targets[0].id for node in body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
        found[path.stem] = (source, frozenset(names))
    return found


def is_environment(tree: ast.Module) -> bool:
    """Whether one of the classes is an environment, a generator with a scorer, or a data set."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            steps = "step" in methods and ("reset" in methods or node.name.endswith("Env"))
            playable = steps or {"_generate", "scorer"} <= methods or {"case_generator", "prompt_func"} <= methods
            if (
                playable or bases & {"ProceduralDataset", "ToolUseBaseEnv", "ToolEnv"}
            ) and "abstractmethod" not in ast.unparse(node):
                return True
    return False


def outside_use(tree: ast.Module) -> str:
    """Return the first use of files, network, processes, threads or evaluation, "" if there is none."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            if name.partition(".")[0] in OUTSIDE_MODULES:
                return name.partition(".")[0]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OUTSIDE_CALLS:
            return node.func.id
    return ""


def prepare(source: str) -> tuple[str, list[str], int]:
    """Replace imports of a collection's own bases by a stand-in.

    Returns:
        The source, the modules that are still missing, and how many lines were put in front.
    """
    lines = source.split("\n")
    wanted: set[str] = set()
    missing: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            if node.module == "__future__" or (not node.level and public_names(node.module or "", _ALLOW) is not None):
                continue
            names = {alias.name for alias in node.names}
            if any(names <= defined for _, defined in stand_ins().values()):
                wanted |= names
                after = "; ".join(f"{alias.asname} = {alias.name}" for alias in node.names if alias.asname)
                lines[node.lineno - 1] = " " * node.col_offset + (after or "pass")
                for number in range(node.lineno, node.end_lineno or node.lineno):
                    lines[number] = ""
            else:
                missing.append("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Import):
            missing += [alias.name for alias in node.names if public_names(alias.name, _ALLOW) is None]
    front = ""
    if wanted:
        front = next((text for text, defined in stand_ins().values() if wanted <= defined), "")
        if any(line.startswith("from __future__") for line in lines):
            front = f"from __future__ import annotations\n{front}"
            lines = ["" if line.startswith("from __future__") else line for line in lines]
    return front + "\n".join(lines), sorted(set(missing)), front.count("\n")


_ALLOW = frozenset({"numpy"})


def companion(path: Path) -> str:
    """Return the source of the parameter controller that stands beside an RLVE-style environment."""
    other = path.parents[2] / "parameter_controllers" / path.parent.name / "parameter_controller.py"
    return "\n" + other.read_text() if path.name == "environment.py" and other.exists() else ""


def judge(label: str, folder: Path, path: Path) -> tuple[Result, dict[str, Any]] | None:
    """Return the verdict of the policy on a file, and the program to play; None if it is no environment."""
    try:
        original = path.read_text()
        tree = ast.parse(original)
    except (SyntaxError, ValueError, UnicodeDecodeError):
        return None
    if not is_environment(tree):
        return None
    source, packages, front = prepare(original + companion(path))
    result = Result(label, str(path.relative_to(folder)), outside_use(tree), packages)
    allow = ["numpy"] if "numpy" in original else []
    for reason in check(source, frozenset(allow)):
        if not (reason.message.startswith("module ") or "relative imports" in reason.message) or not packages:
            result.refusals.append(f"line {reason.line - front}: {reason.message}")
    return result, {"key": str(path), "source": source, "allow": allow}


def play_all(mode: str, programs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Play programs in a process of their own; return what each did."""
    done = subprocess.run(
        [sys.executable, str(CHILD), mode],
        input=json.dumps(programs),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return {answer["key"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def compare(result: Result, plain: dict[str, Any], again: dict[str, Any], guarded: dict[str, Any]) -> None:
    """Set the verdict."""
    failure = plain.get("died") or plain["error"]
    if failure and not plain.get("trajectory"):
        result.verdict, result.detail = "not run", failure
    elif plain != again:
        result.verdict = "not deterministic"
    elif guarded == plain:
        result.verdict = "identical"
    else:
        result.verdict = "different"
        pairs = zip(plain["trajectory"], guarded.get("trajectory", ()), strict=False)
        first = next((f"{a[:200]} != {b[:200]}" for a, b in pairs if a != b), "")
        result.detail = guarded.get("died") or guarded["error"] or first


def examine(folders: list[tuple[str, Path]]) -> list[Result]:
    """Judge and play everything in ``folders``."""
    paths = [(label, folder, path) for label, folder in folders for path in sorted(folder.rglob("*.py"))]
    judged = [found for place in paths if (found := judge(*place)) is not None]
    playable = [(result, program) for result, program in judged if result.in_scope and result.accepted]
    programs = [program for _, program in playable]
    plain = play_all("plain", programs)
    programs = [program for program in programs if plain[program["key"]].get("trajectory")]
    again, guarded = play_all("plain", programs), play_all("guarded", programs)
    for result, program in playable:
        key = program["key"]
        compare(result, plain[key], again.get(key, {}), guarded.get(key, {}))
    return [result for result, _ in judged]


def table(results: list[Result]) -> Iterator[str]:
    """Yield the lines of the report."""
    columns = (
        "folder",
        "files",
        "files, network, eval",
        "other packages (else accepted)",
        "in scope",
        "accepted",
        "run",
    )
    yield f"| {' | '.join(columns)} | identical |"
    yield "|---|---|---|---|---|---|---|---|"
    for folder in sorted({result.folder for result in results}):
        of_folder = [result for result in results if result.folder == folder]
        scope = [result for result in of_folder if result.in_scope]
        accepted = [result for result in scope if result.accepted]
        ran = [result for result in accepted if result.verdict in ("identical", "different")]
        same = [result for result in ran if result.verdict == "identical"]
        outside = sum(bool(result.outside) for result in of_folder)
        packaged = [result for result in of_folder if result.packages and not result.outside]
        spared = [result for result in packaged if result.accepted]
        yield (
            f"| {folder} | {len(of_folder)} | {outside} | {len(packaged)} ({len(spared)}) | {len(scope)} "
            f"| {share(accepted, scope)} | {len(ran)} | {share(same, ran)} |"
        )


def share(part: list[Result], whole: list[Result]) -> str:
    return f"{len(part)} ({len(part) / len(whole):.1%})" if whole else "0"


def _labelled(text: str) -> tuple[str, Path]:
    label, _, folder = text.rpartition("=")
    path = Path(folder).resolve()
    if not path.is_dir():
        raise SystemExit(f"{path} is not a folder")
    return label or path.name, path


def main() -> None:
    """Print the table, the refusals in scope by count, and every difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="or LABEL=FOLDER")
    parser.add_argument("--json", action="store_true", help="one JSON object a file instead of the table")
    arguments = parser.parse_args()
    folders = arguments.folders or [str(HERE / "programs"), str(HERE.parent / "tests" / "data" / "llm_style")]
    results = examine([_labelled(text) for text in folders])
    if arguments.json:
        for result in results:
            print(json.dumps(asdict(result)))
        return
    print("\n".join(table(results)))
    refused = [result for result in results if not result.outside and result.refusals]
    reasons = Counter(text.partition(": ")[2] for result in refused for text in set(result.refusals))
    for title, rows in (
        (
            "refused without use of files, network or eval",
            [f"{count:4} {text}" for text, count in reasons.most_common()],
        ),
        ("refused files", [f"{r.folder}/{r.path}: {r.refusals[0]}" for r in refused]),
        *(
            (verdict, [f"{r.folder}/{r.path}: {r.detail}" for r in results if r.verdict == verdict])
            for verdict in ("different", "not deterministic", "not run")
        ),
    ):
        print(f"\n{title}: {len(rows)}" + "".join(f"\n  {row}" for row in rows))


if __name__ == "__main__":
    main()

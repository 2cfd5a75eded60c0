"""Run as a script by compatibility.py: play programs, each in a jailed child, and print what they did.

    python collections/play.py guarded|plain < [{"key": ..., "source": ..., "allow": [...]}]

Prints one JSON line for each program: {"key", "died": text} or {"key", "error": text, "trajectory": [text]}.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import random
import re
import signal
import sys
import types
from collections.abc import Iterator
from typing import Any

from spade_envs.sandbox import jail, loader
from spade_envs.sandbox.allowlist import PREBOUND, PREBOUND_MODULES
from spade_envs.sandbox.names import PROGRAM_MODULE
from spade_envs.sandbox.policy import FILENAME, compile_program

SEEDS = (1, 7, 12)
STEPS = 12
CPU_SECONDS, WALL_SECONDS, MEMORY_MB = 5, 60, 1024
ACTIONS = ("\\boxed{50}", "\\boxed{up}", "\\boxed{1 2}", "", "\\boxed{A B}", "\\boxed{reveal 0 0}", "[1 1 1]", "x {0}")


def plain_namespace() -> dict[str, Any]:
    """Return the globals of a program under ordinary CPython, with the names that published programs expect."""
    module = sys.modules[PROGRAM_MODULE] = types.ModuleType(PROGRAM_MODULE)
    for name in PREBOUND_MODULES.split():
        setattr(module, name, importlib.import_module(name))
    for owner, names in PREBOUND.items():
        for name in names.split():
            value = getattr(importlib.import_module(owner), name)
            setattr(module, name, value)
    return vars(module)


def play(names: dict[str, Any], seed: int) -> Iterator[Any]:
    """Play what the program offers: an environment, a generator with a scorer, or a data set."""
    own = [value for value in names.values() if isinstance(value, type) and value.__module__ == PROGRAM_MODULE]
    registered = names.get("REGISTERED")
    generators = [value for value in own if hasattr(value, "_generate") and "scorer" in value.__dict__]
    cases = [value for value in own if "case_generator" in value.__dict__]
    if cases:
        yield from play_cases(cases[-1])
    elif registered:
        yield from (item for cls, config in registered for item in play_dataset(cls, config, seed))
    elif generators:
        controllers = [value for value in own if hasattr(value, "get_parameter_list")]
        yield from play_generator(generators[-1], controllers[-1], seed)
    else:
        environments = [value for value in own if hasattr(value, "reset") and hasattr(value, "step")]
        named = [value for value in environments if value.__name__.endswith("Env")]
        yield from play_environment((named or environments)[-1], seed)


def play_environment(cls: Any, seed: int) -> Iterator[Any]:
    """Reset and step for some turns, with what the environment offers as actions and others."""
    environment = cls()
    yield environment.reset(seed=seed)
    for turn in range(STEPS):
        sample = getattr(environment, "sample_random_action", None)
        action = sample() if sample and turn % 3 else ACTIONS[(turn + seed) % len(ACTIONS)]
        result = environment.step(action)
        yield action, result
        if result[2] or result[3]:
            yield environment.reset(seed=seed + turn)
    for name in ("solution", "hint", "get_tools"):
        if hasattr(environment, name):
            yield getattr(environment, name)()


def play_generator(cls: Any, controller_class: Any, seed: int) -> Iterator[Any]:
    """Generate problems of growing difficulty, and score right and wrong answers."""
    controller = controller_class()
    for round_ in range(2):
        for parameter in controller.get_parameter_list()[:2]:
            environment = cls()
            environment.generator(seed + round_, copy.deepcopy(parameter))
            yield environment.prompt_generator(), environment.parameter
            answer = environment.parameter.get("reference_answer")
            for text in (answer, "0", "1 2 3", "a b", ""):
                yield environment.scorer(f"<answer>{text}</answer>")
            yield environment.scorer("no answer")
        controller.update()


def play_cases(cls: Any) -> Iterator[Any]:
    """Make cases, and verify right-looking and wrong outputs."""
    maker = cls()
    for _ in range(4):
        case = maker.case_generator()
        yield case, maker.prompt_func(case)
        values = list(case.values()) if isinstance(case, dict) else []
        for answer in ("0", "1 2 3", "YES", "", *values[-2:]):
            yield maker.verify_score(f"[answer]{answer}[/answer] <answer>{answer}</answer> \\boxed{{{answer}}}", case)


def play_dataset(cls: Any, config_class: Any, seed: int) -> Iterator[Any]:
    """Read the first entries, and score right and wrong answers."""
    data = cls(config_class(seed=seed, size=4))
    for index in range(4):
        entry = data[index]
        yield entry
        for answer in (entry["answer"], "0", None, "a b"):
            yield data.score_answer(answer, entry)


def trajectory(guarded: bool, source: str, allow: frozenset[str]) -> tuple[list[str], str]:
    """Return what the program did, as text, and the error that ended it ("" if none did)."""
    seen: list[str] = []
    if guarded:
        loader.use_generator(random.Random(0))
        names = loader.make_namespace(allow)
        code = compile_program(source, allow)
    else:
        random.seed(0)
        names = plain_namespace()
        code = compile(source, FILENAME, "exec", dont_inherit=True)
    try:
        exec(code, names)
        for seed in SEEDS:
            if guarded:
                loader.use_generator(random.Random(seed))
            else:
                random.seed(seed)
            seen += (re.sub(r"0x[0-9a-f]{6,}", "0x", repr(item)) for item in play(names, seed))
    except Exception as error:
        return seen, f"{type(error).__name__}: {error}"[:300]
    return seen, ""


def in_child(guarded: bool, program: dict[str, Any]) -> dict[str, Any]:
    """Fork, lock down, play; return what came back."""
    reader, writer = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            signal.alarm(WALL_SECONDS)
            jail.lock_down(keep=writer, parent=parent, memory_mb=MEMORY_MB, cpu_seconds=CPU_SECONDS)
            seen, error = trajectory(guarded, program["source"], frozenset(program["allow"]))
            data = json.dumps({"key": program["key"], "trajectory": seen, "error": error}).encode()
            view = memoryview(data)
            while view:
                view = view[os.write(writer, view) :]
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        data = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        answer: dict[str, Any] = json.loads(data)
    except ValueError:
        return {"key": program["key"], "died": f"out of time or memory (status {status})"}
    return answer


def main() -> None:
    """Warm up as a worker does, then play each program."""
    guarded = sys.argv[1] == "guarded"
    loader.warm(("numpy",))
    if guarded:
        loader.harden()
    for program in json.load(sys.stdin):
        print(json.dumps(in_child(guarded, program)), flush=True)


if __name__ == "__main__":
    main()

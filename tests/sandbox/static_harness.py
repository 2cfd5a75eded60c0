"""Run as a script: run programs in this interpreter, guarded or plain, and print what they did as JSON.

    python static_harness.py guarded|plain SEED... < {"name": "source", ...}

``plain`` is ordinary CPython with the real modules and the contract's bases as globals. Both print one trajectory for
each program and seed; a separate process keeps the interpreter's hardening out of the tests' own.
"""

import json
import random
import sys
import types

from spade_envs import contract

ACTIONS = (
    r"\boxed{RGBY}",
    r"\boxed{N}",
    r"\boxed{E}",
    '<tool_call>{"name": "list_items", "arguments": {}}</tool_call>',
    r"\boxed{go north}",
    r"\boxed{take key}",
    r"\boxed{move up 2}",
    r"\boxed{scan}",
    r"\boxed{take}",
    r"\boxed{0,0}",
    r"\boxed{test 1010}",
    r"\boxed{answer xor 0,1,3}",
    r"\boxed{J1}",
    r"\boxed{J0}",
    r"\boxed{ask x}",
    "buy 2 gold",
    r"\boxed{ask Ada}",
    r"\boxed{1,1}",
    r"\boxed{dup}",
    r"\boxed{masks}",
    r"\boxed{3}",
    "",
    "\x00 {0.__class__}",
    '<tool_call>{"name": "ship", "arguments": {"item": "bolt"}}</tool_call>',
    r"\boxed{accuse Bo}",
    r"\boxed{say lantern}",
)
BASES = {name: getattr(contract, name) for name in ("TextEnv", "ToolEnv", "ToolUseBaseEnv", "TerminalBaseEnv")}


def load_plain(source: str) -> type:
    module = types.ModuleType("plain_program")
    sys.modules[module.__name__] = module
    module.__dict__.update(BASES)
    exec(compile(source, "plain", "exec", dont_inherit=True), module.__dict__)
    classes = [value for name, value in vars(module).items() if name.endswith("Env") and name not in BASES]
    return [value for value in classes if value.__module__ == module.__name__][-1]


def load_guarded(source: str) -> type:
    return loader.load_program(source, frozenset({"numpy"}))


def trajectory(cls: type, seed: int) -> list:
    environment = cls()
    random.seed(0)
    seen = [environment.reset(seed=seed)]
    for index in range(30):
        result = environment.step(ACTIONS[(index * (1 + seed % 3) + seed) % len(ACTIONS)])
        seen.append(result)
        if result[2] or result[3]:
            seen.append(environment.reset(seed=seed + index + 1))
    if hasattr(environment, "solution"):
        seen.append(environment.solution())
    return [repr(item) for item in seen]


if __name__ == "__main__":
    guarded = sys.argv[1] == "guarded"
    if guarded:
        from spade_envs.sandbox import loader

        loader.warm(("numpy",))
        loader.harden()
    results = {}
    for label, source in json.load(sys.stdin).items():
        cls = load_guarded(source) if guarded else load_plain(source)
        results[label] = [trajectory(cls, int(seed)) for seed in sys.argv[2:]]
    json.dump(results, sys.stdout)

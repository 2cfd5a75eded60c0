"""Run as a script: let a real sandbox, at one level, run the attacks of :mod:`attacks`.

    python harness.py LEVEL

Prints JSON: what the caller saw of each attack, the isolation, and what was left behind.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

if sys.argv[1].endswith("macOS"):
    sys.platform = "darwin"  # the caller too does without what Linux adds

from attacks import ATTACKS

from spade_envs.sandbox import Limits, ProgramError, Sandbox, process
from spade_envs.sandbox.wasi.process import WasiZygoteProcess

LIMITS = Limits(soft_seconds=0.15, hard_seconds=0.25, load_seconds=1.0, memory_mb=96)
PROGRAM = '''
STATEMENTS = {statements!r}
class AttackEnv:
    """An attack."""
    def __init__(self, **_): pass
    def reset(self, seed=None): return "ready", {{}}
    def step(self, action):
        names = dict(globals())
        exec(STATEMENTS, names)
        return str(names.get("result", "done"))[:500], 0.0, True, False, {{}}
'''
INNOCENT = PROGRAM.format(statements="result = 6 * 7")


def start(descriptor, log, optional):
    """As ``ZygoteProcess._start``, with the entry point that runs unrestricted Python."""
    here = Path(__file__).resolve().parent
    product = Path(process.__file__).resolve().parent
    path = [entry for entry in sys.path if os.path.isabs(entry) and os.path.exists(entry)]
    script = str(here / "open_bootstrap.py")
    return subprocess.Popen(
        [
            *(sys.executable, "-s", "-P", script, sys.argv[1], str(descriptor), str(os.getpid()), str(product)),
            *(" ".join(optional), *path),
        ],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        env=process._ENVIRONMENT,
        cwd="/",
    )


def play(program):
    """Return what the caller sees of one step."""
    played = program.session()
    played.reset(1)
    return f"value: {played.step('go').observation}"


def outcome(sandbox, statements):
    """Carry out one attack in a worker of its own."""
    program = sandbox.open(PROGRAM.format(statements=statements))
    try:
        return play(program)
    except ProgramError as error:
        return f"{type(error).__name__}: {error}"[:500]
    finally:
        program.close()


def children(pid):
    """Return the live children of ``pid``."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(entry))
    return found


def main():
    process.ZygoteProcess._start = WasiZygoteProcess._start = staticmethod(start)
    minimum = "wasi" if sys.argv[1].startswith("wasi") else "static"
    os.environ["SPADE_TEST_TOKEN"] = "a secret of the caller"
    inherited = os.open("/", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    with Sandbox(LIMITS, minimum_isolation=minimum) as sandbox:
        innocent = sandbox.open(INNOCENT)
        found = {name: outcome(sandbox, attack.statements) for name, attack in ATTACKS.items()}
        answer = play(innocent)
        innocent.close()
        isolation = sandbox.isolation
        (zygote,) = [process.pid for process in sandbox._processes._zygotes.values()]
        until = time.monotonic() + 10
        while children(zygote) and time.monotonic() < until:
            time.sleep(0.05)
        left = len(children(zygote))
    written = sorted(Path("/tmp").glob("pwned*"))
    for path in written:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    report = {
        "written": list(map(str, written)),
        "level": isolation.level,
        "missing": sorted(isolation.missing),
        "left": left,
        "innocent": answer,
    }
    print(json.dumps({"outcomes": found, **report}))


if __name__ == "__main__":
    main()

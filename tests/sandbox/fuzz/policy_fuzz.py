"""The fuzzer: programs of the grammar, run in batches by the harness. Also a command for long runs.

python tests/sandbox/fuzz/policy_fuzz.py --programs 50000 --seed 1
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from attack_grammar import Grammar  # noqa: E402


class Harness:
    """The process that runs programs, with one hole planted if asked to."""

    def __init__(self, weakening: str | None = None, numpy: bool = False) -> None:
        options = [*(["--numpy"] if numpy else []), *([weakening] if weakening else [])]
        command = [sys.executable, str(HERE / "fuzz_harness.py"), *options]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self) -> "Harness":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def run(self, batch: list[list[str]]) -> list[str | None]:
        """What is wrong with each program, None for nothing."""
        self.process.stdin.write(json.dumps(batch) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def reduced(self, program: list[str], wrong: str) -> list[str]:
        """The program without the fragments that do not matter."""
        for fragment in list(program):
            shorter = [item for item in program if item is not fragment]
            if shorter and self.run([shorter])[0] == wrong:
                program = shorter
        return program


def hunt(weakening: str | None, seed: int, budget: int, numpy: bool = False, batch: int = 20) -> str | None:
    """The first finding with one hole planted (or none), among ``budget`` programs."""
    numpy = numpy or "numpy" in (weakening or "")
    grammar = Grammar(Random(seed), numpy)
    with Harness(weakening, numpy) as harness:
        for _ in range(0, budget, batch):
            for wrong in harness.run([grammar.program() for _ in range(batch)]):
                if wrong:
                    return wrong
    return None


def main() -> int:
    """Run programs until the count is reached; print every finding, reduced."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--programs", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--batch", type=int, default=25)
    arguments.add_argument("--numpy", action="store_true", help="programs that opted in to numpy")
    arguments.add_argument("--weaken", help="plant a hole (see weakenings.py)")
    chosen = arguments.parse_args()
    grammar = Grammar(Random(chosen.seed), chosen.numpy)
    found: dict[str, list[str]] = {}
    with Harness(chosen.weaken, chosen.numpy) as harness:
        done = 0
        while done < chosen.programs:
            batch = [grammar.program() for _ in range(chosen.batch)]
            for program, wrong in zip(batch, harness.run(batch)):
                if wrong and wrong not in found:
                    found[wrong] = harness.reduced(program, wrong)
                    print(f"--- {wrong}", *found[wrong], sep="\n", flush=True)
            done += len(batch)
    print(f"{done} programs, {len(found)} kinds of findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

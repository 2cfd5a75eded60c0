"""Run as a script: print which attack covers which item, and what came of it at each level.

python table.py [LEVEL...]
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from attacks import ATTACKS
from expectations import ITEMS, LEVELS, attacks_of, verdict

HARNESS = Path(__file__).with_name("harness.py")


def outcomes(level):
    """Return what the caller saw of each attack at one level."""
    done = subprocess.run([sys.executable, str(HARNESS), level], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{level}: {done.stderr}")
    return json.loads(done.stdout)["outcomes"]


def cell(level, seen, names):
    """Return one item's result: "all" contained, or how many, and what of the others."""
    found = Counter(verdict(LEVELS[level], name, seen[name]) for name in names)
    if set(found) == {"contained"}:
        return f"{len(names)} of {len(names)}"
    others = ", ".join(f"{count} {what}" for what, count in found.items() if what != "contained")
    return f"{found['contained']} of {len(names)} ({others})"


def main():
    levels = sys.argv[1:] or list(LEVELS)
    seen = {level: outcomes(level) for level in levels}
    print("| item | attacks | " + " | ".join(levels) + " |")
    print("|---" * (len(levels) + 2) + "|")
    for item in ITEMS:
        names = attacks_of(item)
        cells = " | ".join(cell(level, seen[level], names) for level in levels)
        print(f"| {item} | {', '.join(names)} | {cells} |")
    totals = " | ".join(cell(level, seen[level], list(ATTACKS)) for level in levels)
    print(f"| **all** | {len(ATTACKS)} | {totals} |")


if __name__ == "__main__":
    main()

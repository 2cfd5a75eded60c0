"""The attack corpus, and the table of it: kinds of attack by the layer that stops them.

python tests/sandbox/attack_table.py
"""

import json
from collections import Counter
from pathlib import Path

TABLE = Path(__file__)
DATA = TABLE.parents[1] / "data"
LAYERS = ("policy", "guards", "limits", "jail", "wire", "none")
ATTACKS = [json.loads(line) for name in ("attacks", "attacks_more") for line in (DATA / f"{name}.jsonl").open()]


def main() -> None:
    """Print a Markdown table."""
    counts = Counter((attack["kind"], attack["layer"]) for attack in ATTACKS)
    kinds = sorted({attack["kind"] for attack in ATTACKS})
    print("|".join(["", " attack on ", *(f" {layer} " for layer in LAYERS), " all ", ""]))
    print("|---" * (len(LAYERS) + 2) + "|")
    for kind in kinds:
        row = [counts[kind, layer] for layer in LAYERS]
        print("|".join(["", f" {kind} ", *(f" {count or ''} " for count in row), f" {sum(row)} ", ""]))
    totals = [sum(counts[kind, layer] for kind in kinds) for layer in LAYERS]
    print("|".join(["", " all ", *(f" {total} " for total in totals), f" {len(ATTACKS)} ", ""]))


if __name__ == "__main__":
    main()

"""The fixed held-out set of the nano model: ``python -m spade_train.nano.heldout`` writes ``evaluation/heldout.jsonl``.

Programs of the same grammar as the warm start, but with words that the designer never sees and only combinations
that are reserved for it (:func:`spade_train.nano.grammar.reserved`), in tiers of rising demand.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import spade_train
from spade_train.nano.draws import EVEN, draw_spec
from spade_train.nano.grammar import HELD_OUT_WORDS, OPERATIONS, SKILLS, Spec, reserved, source, statement

HELD_OUT_FILE = Path(spade_train.__file__).parent / "evaluation" / "heldout.jsonl"

BOUNDS = (3.1, 4.1, 5.6)
"""Demands that part the tiers 1 to 4."""
HARDEST = 8.0
PER_TIER = 25
_COUNTS = (0.5, 0.35, 0.15)
_MOST_OF_A_SKILL = 9
_MOST_OF_A_STATEMENT = 2  # with other words


def demand(spec: Spec) -> float:
    """How much a program asks for, in symbols to get right, so that success falls from tier to tier."""
    if spec.skill == "guess":
        return 2 + 3 * (1 - min(1.0, float(2**spec.turns - 1) / spec.modulus))
    if spec.skill == "running":
        return 1 + 0.8 * spec.turns + 0.5 * (spec.update == "double")
    modular = sum(OPERATIONS[name].modular for name in spec.names)
    steps = max(0, len(spec.operations) - 1)
    return spec.answers + 1.5 * steps + 1.2 * (spec.skill == "lookup") + 0.5 * modular


def draw_held_out(seed: int = 20) -> list[tuple[int, Spec]]:
    """Draw the set: tier and spec, 25 of each tier, no task twice, no skill above 9 in a tier."""
    chosen: dict[int, list[Spec]] = {tier: [] for tier in range(1, len(BOUNDS) + 2)}
    seen: Counter[str] = Counter()
    for spec in _candidates(random.Random(f"held out {seed}")):
        tier = 1 + sum(demand(spec) >= bound for bound in BOUNDS)
        group = chosen[tier]
        full = sum(other.skill == spec.skill for other in group) >= _MOST_OF_A_SKILL
        key = f"{statement(spec)} {spec.modulus}"
        often = _MOST_OF_A_STATEMENT if spec.words else 1
        if len(group) < PER_TIER and not full and seen[key] < often:
            seen[key] += 1
            group.append(spec)
        if all(len(group) == PER_TIER for group in chosen.values()):
            break
    return [(tier, spec) for tier, group in chosen.items() for spec in group]


def write_held_out(path: Path = HELD_OUT_FILE) -> None:
    """Write the set that comes with the package."""
    lines = []
    for index, (tier, spec) in enumerate(draw_held_out()):
        row = {"id": f"heldout-{index:03}", "tier": tier, "skill": spec.skill, "source": source(spec)}
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _candidates(rng: random.Random) -> Iterator[Spec]:
    for _ in range(200_000):
        words = rng.sample(HELD_OUT_WORDS, 6)
        spec = draw_spec(rng, rng.choice(SKILLS), words, sizes=EVEN, counts=_COUNTS)
        if reserved(spec) and demand(spec) <= HARDEST:
            yield spec
    raise RuntimeError("the grammar offers too few reserved programs to fill the tiers; widen BOUNDS")


if __name__ == "__main__":
    write_held_out()

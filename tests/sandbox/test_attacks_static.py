"""Attacks on the static layer, each in a jailed worker of its own: refused before it runs, or stopped when it runs.

Every source leaves what it got hold of in ``r``, or changes something shared. None may run to its end, save the few
that are shown to be harmless.
"""

import json
from pathlib import Path

import pytest

from spade_envs.sandbox import PolicyViolation, ProgramRaised

DATA = Path(__file__).parents[1] / "data"
ATTACKS = [json.loads(line) for name in ("attacks", "attacks_more") for line in (DATA / f"{name}.jsonl").open()]

HARMLESS = {
    "import x as _getattr_": "the name means nothing here",
    "str.join/%-format %(x)s no attr": "percent formatting reads no attributes",
    "RT: string annotation dataclass": "a string annotation is never evaluated",
}
STOPPED_BY = {
    *("Refused", "AssertionError", "AttributeError", "TypeError"),
    *("ValueError", "ImportError", "NameError", "KeyError"),
}
PROLOGUE = "OUT = []\ndef f0(): pass\n"
EPILOGUE = """
class AttackEnv:
    def reset(self, seed=None): return "", {}
    def step(self, action): return "", 0.0, True, False, {}
"""


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"][:60])
def test_attack_is_refused_or_stopped(attack, sandbox):
    allow = ("numpy",) if "numpy" in attack["source"] else ()
    source = PROLOGUE + attack["source"] + EPILOGUE
    if attack["name"] in HARMLESS:
        sandbox.open(source, allow=allow).close()
        return
    with pytest.raises((PolicyViolation, ProgramRaised)) as caught:
        sandbox.open(source, allow=allow).close()
    if isinstance(caught.value, ProgramRaised):
        assert caught.value.exception in STOPPED_BY
        # an attack that fails because a name is missing proves nothing, unless that name is a built-in we removed
        assert caught.value.exception != "NameError" or any(
            name in caught.value.message for name in ("'open'", "'system'")
        )
    else:
        assert all(reason.line > 0 for reason in caught.value.reasons)


def test_there_are_enough_attacks_of_different_kinds():
    names = [attack["name"] for attack in ATTACKS]
    assert len(names) == len(set(names)) >= 200

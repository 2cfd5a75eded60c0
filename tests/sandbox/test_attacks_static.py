"""Attacks in generated code: each names the layer that has to stop it, and that layer does.

Each runs in a jailed worker of its own. Every source leaves what it got hold of in ``r``, or changes something shared.
The layers: ``policy`` (refused before it runs), ``guards`` (gets through the policy, stopped when it runs), ``limits``
(ended by time or memory), ``jail`` (the worker dies alone), ``wire`` (the answer is refused or mended), ``none``
(reaches nothing; ``error`` is what plain Python says).
"""

import subprocess
import sys
from collections import Counter
from textwrap import indent

import pytest
from attack_table import ATTACKS, LAYERS, TABLE

from spade_envs.sandbox import PolicyViolation, ProgramDied, ProgramRaised, ProgramTimeout, ProtocolViolation
from spade_envs.sandbox.policy import check

PROLOGUE = "OUT = []\ndef f0(): pass\n"
EPILOGUE = """
class AttackEnv:
    def reset(self, seed=None): return "", {}
    def step(self, action): return "", 0.0, True, False, {}
"""


def of(layer: str):
    chosen = [attack for attack in ATTACKS if attack["layer"] == layer]
    return pytest.mark.parametrize("attack", chosen, ids=lambda attack: attack["name"][:60])


def allow(attack: dict) -> frozenset[str]:
    return frozenset({"numpy"} if "numpy" in attack["source"] else ())


def play(sandbox, attack: dict):
    """Load the attack and take a step; a wire attack brings its own environment."""
    if attack["layer"] == "limits":  # in a step, which may take less time than loading
        source = EPILOGUE.replace(
            'return "", 0.0', "\n" + indent(attack["source"], " " * 8) + '\n        return "", 0.0'
        )
    else:
        source = PROLOGUE + attack["source"] + ("" if attack["layer"] == "wire" else EPILOGUE)
    assert not check(source, allow(attack)), "the policy must let it through, or the layer is not tested"
    program = sandbox.open(source, allow=tuple(allow(attack)))
    try:
        session = program.session()
        session.reset(1)
        return session.step("go")
    finally:
        program.close()


@of("policy")
def test_the_policy_refuses(attack, sandbox):
    source = PROLOGUE + attack["source"] + EPILOGUE
    reasons = check(source, allow(attack))
    assert reasons
    assert all(reason.line > 0 for reason in reasons)
    with pytest.raises(PolicyViolation):
        sandbox.open(source, allow=tuple(allow(attack)))


@of("guards")
def test_the_guards_stop(attack, sandbox):
    with pytest.raises(ProgramRaised) as caught:
        play(sandbox, attack)
    assert caught.value.exception == attack.get("error", "Refused")


@of("none")
def test_nothing_is_reached(attack, sandbox):
    if "error" not in attack:
        try:
            play(sandbox, attack)
        except ProgramRaised as error:
            if error.exception != "Refused":  # what some versions of Python would reach is stopped there
                raise
        return
    with pytest.raises(ProgramRaised) as caught:
        play(sandbox, attack)
    assert caught.value.exception == attack["error"]


@of("limits")
def test_the_limits_end(attack, sandbox):
    with pytest.raises((ProgramTimeout, ProgramRaised)) as caught:
        play(sandbox, attack)
    if attack.get("error") == "MemoryError":
        assert caught.value.exception == "MemoryError"
    else:
        assert isinstance(caught.value, ProgramTimeout)


@of("jail")
def test_the_jail_contains(attack, sandbox):
    with pytest.raises(ProgramDied):
        play(sandbox, attack)


@of("wire")
def test_the_wire_refuses_or_mends(attack, sandbox):
    if "error" in attack:
        with pytest.raises(ProtocolViolation):
            play(sandbox, attack)
        return
    result = play(sandbox, attack)
    assert type(result.observation) is str
    assert len(result.observation) <= sandbox.limits.max_observation_chars
    result.observation.encode()  # no lone surrogate is left
    assert type(result.info) is dict


def test_there_are_enough_attacks_of_different_kinds():
    names = [attack["name"] for attack in ATTACKS]
    assert len(names) == len(set(names)) >= 300
    layers = Counter(attack["layer"] for attack in ATTACKS)
    assert set(layers) == set(LAYERS)
    assert layers["none"] <= len(ATTACKS) // 10
    assert len({attack["kind"] for attack in ATTACKS}) >= 15


def test_the_table_counts_every_attack():
    done = subprocess.run([sys.executable, TABLE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split("|")[-2].strip() == str(len(ATTACKS))

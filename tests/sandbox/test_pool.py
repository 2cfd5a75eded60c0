"""Programs that misbehave: each costs its own environment, the others go on with the same values."""

import pytest

from spade_envs.sandbox import (
    Limits,
    Operation,
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramQuarantined,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
    Sandbox,
)

QUICK = Limits(soft_seconds=0.3, hard_seconds=1.0, memory_mb=128)
OK = 'return "fine", 0.0, False, False, {}'

# name → (body of step, header, errors that are right, one of them)
ABUSES: dict[str, tuple[str, str, tuple[type[ProgramError], ...]]] = {
    "loop": ("while True:\n    pass", "", (ProgramTimeout,)),
    "loop under a bare except": (
        "while True:\n    try:\n        while True:\n            pass\n    except:\n        pass",
        "",
        (ProgramTimeout,),
    ),
    "loop in finally": (
        "def again():\n    try:\n        while True:\n            pass\n    finally:\n        again()\nagain()",
        "",
        (ProgramTimeout, ProgramRaised, ProgramDied),
    ),
    "sum of a long range": ("sum(range(10**12))", "", (ProgramTimeout, ProgramDied)),
    "power": ("x = 10\ny = 8\nz = x ** (x ** y)\n" + OK, "", (ProgramTimeout, ProgramRaised, ProgramDied)),
    "factorial": ("math.factorial(10**7)", "import math", (ProgramTimeout,)),
    "backtracking": ('re.match(r"(a+)+$", "a" * 40 + "b")', "import re", (ProgramTimeout,)),
    "memory by doubling": ("x = [0]\nwhile True:\n    x = x + x", "", (ProgramRaised, ProgramDied)),
    "memory in one piece": ('x = "a" * 10**10', "", (ProgramRaised, ProgramDied)),
    "memory that is kept": (
        "self.hoard = []\nwhile True:\n    self.hoard.append([0] * 100000)",
        "",
        (ProgramRaised, ProgramDied),
    ),
    "recursion": ("def f(n):\n    return f(n + 1)\nf(0)", "", (ProgramRaised,)),
    "nested maps": (
        "x = iter([1])\nfor _ in range(200000):\n    x = map(abs, x)\nnext(x)",
        "",
        (ProgramDied, ProgramRaised),
    ),
    "nested tuples hashed": (
        't = ()\nfor _ in range(300000):\n    t = (t,)\nreturn str(hash(t)), 0.0, False, False, {"deep": 1}',
        "",
        (ProgramDied, ProgramRaised),
    ),
    "nested lists compared": (
        "a = []\nb = []\nfor _ in range(200000):\n    a = [a]\n    b = [b]\nreturn str(a == b), 0.0, False, False, {}",
        "",
        (ProgramRaised, ProgramDied),
    ),
    "SystemExit": ("raise SystemExit(3)", "", (ProgramRaised,)),
    "KeyboardInterrupt": ("raise KeyboardInterrupt()", "", (ProgramRaised,)),
    "StopIteration": ("next(iter([]))", "", (ProgramRaised,)),
    "reward NaN": ('return "x", float("nan"), True, False, {}', "", (ProtocolViolation,)),
    "reward infinite": ('return "x", float("inf"), True, False, {}', "", (ProtocolViolation,)),
    "reward too large": ('return "x", 10**400, True, False, {}', "", (ProtocolViolation,)),
    "reward bool": ('return "x", True, True, False, {}', "", (ProtocolViolation,)),
    "reward text": ('return "x", "1.0", True, False, {}', "", (ProtocolViolation,)),
    "flag of another type": ('return "x", 0.0, 1, False, {}', "", (ProtocolViolation,)),
    "observation of another type": ("return None, 0.0, True, False, {}", "", (ProtocolViolation,)),
    "str subclass": (
        'return Text("x"), 0.0, True, False, {}',
        "class Text(str):\n    pass",
        (ProtocolViolation, PolicyViolation),
    ),
    "four values": ('return "x", 0.0, True, {}', "", (ProtocolViolation,)),
    "nothing": ("pass", "", (ProtocolViolation,)),
    "info of another type": ('return "x", 0.0, True, False, None', "", (ProtocolViolation,)),
    "exception whose text loops": (
        'raise Odd("x")',
        "class Odd(Exception):\n    def __str__(self):\n        while True:\n            pass",
        (ProgramTimeout,),
    ),
    "exception whose text is a str of its own": (
        "raise Odd()",
        "class Text(str):\n    def __len__(self): return 0\n    def encode(self, *a): return self\n"
        "    def decode(self, *a): return object()\n"
        "class Odd(Exception):\n    def __str__(self): return Text('hello')",
        (ProgramRaised,),
    ),
    "exception with a huge text": ('raise ValueError("x" * 10**7)', "", (ProgramRaised,)),
    "exception with surrogates": ("raise ValueError(chr(0xD800))", "", (ProgramRaised,)),
}


@pytest.fixture(scope="module")
def quick():
    with Sandbox(QUICK) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def neighbour(quick, counter_source):
    """A well-behaved program in the same pool, and what it does undisturbed."""
    program = quick.open(counter_source)
    return program, _episode(program)


def _episode(program):
    session = program.session(max_turns=5)
    results = [session.reset(11), *(session.step(f"a{i}") for i in range(5))]
    session.close()
    return results


@pytest.mark.parametrize("name", ABUSES)
def test_abuse_costs_that_environment_alone(quick, neighbour, step_source, name):
    body, header, expected = ABUSES[name]
    other, undisturbed = neighbour
    innocent = other.session(max_turns=5)
    try:
        program = quick.open(step_source(body, header))
    except ProgramError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert isinstance(refused, expected), refused
        return
    session = program.session()
    session.reset(1)
    batches = [
        (program, [Operation("step", session.number, "go")]),
        (
            other,
            [Operation("reset", innocent.number, 11), *(Operation("step", innocent.number, f"a{i}") for i in range(5))],
        ),
    ]
    (outcome,), neighbours = quick.run_many(batches)
    assert isinstance(outcome.error, expected), outcome
    assert [result.unwrap() for result in neighbours] == undisturbed
    assert len(str(outcome.error)) < 3_000
    if not program.quarantined:
        assert program.session().reset(1).observation == "start"
    program.close()
    innocent.close()


def test_errors_carry_the_line_of_the_source(quick, step_source):
    source = step_source('if action == "bad":\n    raise ValueError("not that")\n' + OK)
    session = quick.open(source).session()
    session.reset(0)
    with pytest.raises(ProgramRaised) as caught:
        session.step("bad")
    assert caught.value.exception == "ValueError"
    assert caught.value.message == "not that"
    assert source.splitlines()[caught.value.line - 1].strip() == 'raise ValueError("not that")'
    assert session.step("good").observation == "fine"


def test_errors_while_loading(quick):
    with pytest.raises(ProgramRaised) as caught:
        quick.open("x = 1\ny = x / 0\nclass AEnv:\n    pass\n")
    assert caught.value.exception == "ZeroDivisionError"
    assert caught.value.line == 2
    with pytest.raises(ProtocolViolation):
        quick.open("x = 1\n")
    with pytest.raises(ProgramError):
        quick.open("class AEnv\n")
    with pytest.raises(PolicyViolation):
        quick.open("#" * 200_001)


def test_errors_in_the_constructor(quick):
    program = quick.open(
        "class AEnv:\n    def __init__(self):\n        raise KeyError('k')\n"
        "    def reset(self, seed=None):\n        return '', {}\n"
        "    def step(self, action):\n        return '', 0.0, True, False, {}\n"
    )
    with pytest.raises(ProgramRaised) as caught:
        program.session()
    assert caught.value.exception == "KeyError"
    with pytest.raises(ProgramRaised) as caught:
        program.session(max_turns=3)
    assert caught.value.exception == "TypeError"


def test_long_observations_are_shortened_visibly(quick, step_source):
    session = quick.open(step_source('return "ab" * 20_000_000, 0.0, False, False, {}')).session()
    session.reset(0)
    observation = session.step("x").observation
    assert len(observation) == QUICK.max_observation_chars
    assert observation.startswith("abab")
    assert observation.endswith("[truncated: 40000000 characters, limit 65536]")


@pytest.mark.parametrize("limit", [1, 30, 100])
def test_small_limits(step_source, limit):
    source = step_source('return "x" * 500, 0.0, False, False, {}').replace(
        "class AbuseEnv:", 'class AbuseEnv:\n    """' + "d" * 200 + '"""'
    )
    with Sandbox(Limits(max_observation_chars=limit)) as sandbox:
        program = sandbox.open(source)
        session = program.session()
        assert len(session.reset(0).observation) == min(5, limit)
        assert len(session.step("x").observation) == limit
        assert len(program.info.description) == limit


def test_lone_surrogates_and_wild_actions(quick, step_source):
    session = quick.open(step_source("return chr(0xD800) + action[:20], 0.0, False, False, {}")).session()
    session.reset(0)
    assert session.step("\ud83d").observation == "??"
    assert session.step("\x00").observation == "?\x00"
    assert session.step("y" * 1_000_000).observation == "?" + "y" * 20
    with pytest.raises(ProtocolViolation, match="at most"):
        session.step("z" * (QUICK.max_frame_bytes + 1))
    assert session.step("still").observation == "?still"


def test_info_is_cleaned(quick, step_source):
    body = (
        'd = {"a": 1, "b": [1], "c": 10**400, "d": float("nan"), 5: 6, "e": None, "f": True, "g": "t", "h": 0.5}\n'
        'd["self"] = d\n'
        "return '', 0.0, False, False, d"
    )
    session = quick.open(step_source(body)).session()
    session.reset(0)
    assert session.step("x").info == {"a": 1, "e": None, "f": True, "g": "t", "h": 0.5}


def test_soft_limit_leaves_the_worker_alive_but_the_session_undefined(quick, step_source):
    body = 'if action == "loop":\n    while True:\n        pass\n' + OK
    program = quick.open(step_source(body))
    first, second = program.session(), program.session()
    first.reset(0)
    second.reset(0)
    with pytest.raises(ProgramTimeout):
        first.step("loop")
    with pytest.raises(ProgramTimeout, match="earlier operation"):
        first.step("x")
    assert program.strikes == 1
    assert second.step("x").observation == "fine"
    first.reset(0)
    assert first.step("x").observation == "fine"


def test_a_session_that_timed_out_gives_its_memory_back(quick, step_source):
    """Its state is undefined: the next reset is a new instance's."""
    body = 'self.turn += 1\nself.hoard = "x" * 60_000_000\nif action == "loop":\n    while True:\n        pass\n'
    program = quick.open(step_source(body + "return str(self.turn), 0.0, False, False, {}"))
    for round_ in range(2):
        first, second = program.session(), program.session()
        first.reset(0)
        with pytest.raises(ProgramTimeout):
            first.step("loop")
        assert second.step("x").observation == "1"  # there would be no room for two
        second.close()
        if round_ == 0:
            first.reset(0)
            assert first.step("x").observation == "1"
        first.close()


def test_a_program_in_quarantine_has_no_worker(step_source):
    with Sandbox(Limits(soft_seconds=0.05, quarantine_after=1)) as sandbox:
        program = sandbox.open(step_source("while True:\n    pass"))
        session = program.session()
        with pytest.raises(ProgramTimeout):
            session.step("x")
        assert program.seat.worker is None
        session.close()
        program.close()


CRASH = (
    'if action == "crash":\n    x = iter([1])\n    for _ in range(300000):\n        x = map(abs, x)\n    next(x)\n' + OK
)


def test_a_death_loses_the_sessions_and_restarts_the_worker(quick, step_source):
    program = quick.open(step_source(CRASH))
    first, second = program.session(), program.session()
    first.reset(0)
    second.reset(0)
    with pytest.raises(ProgramDied, match="SIGSEGV"):
        first.step("crash")
    for session in (first, second):
        with pytest.raises(ProgramDied, match="lost"):
            session.step("x")
    assert program.session().reset(0).observation == "start"
    assert program.strikes == 1


def test_outcomes_before_a_death_are_kept(quick, step_source):
    program = quick.open(step_source('if action == "slow":\n    sum(range(2000000))\n' + CRASH))
    number = program.new_session_number()
    operations = [Operation("make", number, {}), Operation("reset", number, 0), Operation("step", number, "slow")]
    operations += [Operation("step", number, "crash"), Operation("step", number, "x"), Operation("hint", number)]
    outcomes = program.run(operations)
    assert [outcome.error is None for outcome in outcomes] == [True, True, True, False, False, False]
    assert all(type(outcome.error) is ProgramDied for outcome in outcomes[3:])


def test_quarantine(step_source, counter_source):
    with Sandbox(Limits(soft_seconds=0.05, quarantine_after=2)) as sandbox:
        program = sandbox.open(step_source("while True:\n    pass"))
        numbers = [program.new_session_number() for _ in range(4)]
        operations = [Operation(name, number, 0) for number in numbers for name in ("make", "reset", "step")]
        operations = [
            operation._replace(argument=None) if operation.name == "make" else operation for operation in operations
        ]
        outcomes = program.run(operations)
        assert [type(outcome.error) for outcome in outcomes[2::3]] == [
            ProgramTimeout,
            ProgramTimeout,
            ProgramQuarantined,
            ProgramQuarantined,
        ]
        assert program.quarantined
        assert type(program.run([Operation("make", 9)])[0].error) is ProgramQuarantined
        with pytest.raises(ProgramQuarantined):
            program.session()
        assert sandbox.open(counter_source).session().reset(1).info == {"turn": 0}


def test_optional_methods(quick):
    source = '''
class ToolsEnv:
    """Has everything."""
    def reset(self, seed=None):
        self.n = seed
        return "start", {}
    def step(self, action):
        return "end", 1.0, True, False, {}
    def hint(self):
        return "h" * 100000
    def solution(self):
        return "one" if self.n == 1 else ("a", "b")
    def get_tools(self):
        return [{"type": "function", "function": {"name": "look", "parameters": {}}}]
'''
    program = quick.open(source)
    assert program.info.class_name == "ToolsEnv"
    assert program.info.description == "Has everything."
    assert (program.info.has_hint, program.info.has_solution, program.info.has_tools) == (True, True, True)
    session = program.session()
    session.reset(1)
    assert len(session.hint()) == QUICK.max_observation_chars
    assert session.solution() == ["one"]
    session.reset(2)
    assert session.solution() == ["a", "b"]
    assert session.tools()[0]["function"]["name"] == "look"


def test_optional_methods_that_are_missing(quick, counter_source):
    session = quick.open(counter_source).session()
    session.reset(1)
    assert session.hint() is None
    assert session.solution() is None
    assert session.tools() == []


@pytest.mark.parametrize(
    ("method", "value", "match"),
    [
        ("hint", "3", "hint"),
        ("solution", "3", "solution"),
        ("solution", "['a', 1]", "solution"),
        ("solution", "['a'] * 5000", "too long"),
        ("get_tools", "3", "get_tools"),
        ("get_tools", "[{'a': float('nan')}]", "JSON"),
        ("get_tools", "[{'a': {1, 2}}]", "JSON"),
        ("get_tools", "[{'a': 'x' * 100000}]", "too long"),
        ("get_tools", "[{'function': 5}]", "must be an object"),
        ("get_tools", "[{'a': functools.reduce(lambda x, _: [x], range(40), 0)}]", "nested more than"),
        ("get_tools", "[{'a': functools.reduce(lambda x, _: [x], range(3000), 0)}]", "nested more than"),
    ],
)
def test_optional_methods_that_return_nonsense(quick, step_source, method, value, match):
    source = step_source(OK) + f"    def {method}(self):\n        return {value}\n"
    session = quick.open(source).session()
    session.reset(0)
    with pytest.raises(ProtocolViolation, match=match):
        {"hint": session.hint, "solution": session.solution, "get_tools": session.tools}[method]()


TALLY = """
count = 0
class TallyEnv:
    tally = []
    def reset(self, seed=None):
        return '', {}
    def step(self, action):
        global count
        count += 1
        self.tally.append(action)
        type(self).last = action
        return f"{count} {len(self.tally)} {TallyEnv.last}", 0.0, False, False, {}
"""


def test_instances_have_modules_of_their_own(quick):
    program = quick.open(TALLY)
    one, two = program.session(), program.session()
    one.reset(0)
    two.reset(0)
    assert [session.step(text).observation for session, text in ((one, "x"), (two, "y"), (one, "z"))] == [
        "1 1 x",
        "1 1 y",
        "2 2 z",
    ]
    program.run([Operation("make", one.number), Operation("reset", one.number, 0)])
    assert one.step("new").observation == "1 1 new"


def test_instances_share_a_module_if_asked_to(quick):
    program = quick.open(TALLY, shared=True)
    one, two = program.session(), program.session()
    assert [session.step(text).observation for session, text in ((one, "x"), (two, "y"), (one, "z"))] == [
        "1 1 x",
        "2 2 y",
        "3 3 z",
    ]


def test_a_copy_shares_its_originals_module(quick):
    session = quick.open(TALLY).session()
    session.reset(0)
    session.step("x")
    copied = session.copy()
    assert copied.step("y").observation == "2 2 y"
    assert session.step("z").observation == "3 3 z"


def test_instances_have_decimal_contexts_of_their_own(sandbox):
    program = sandbox.open(
        """
import decimal

decimal.getcontext().prec = 5

class SharpEnv(TextEnv):
    def step(self, action):
        if action.isdigit():
            decimal.getcontext().prec = int(action)
        return str(decimal.Decimal(1) / 3), 0.0, False, False, {}
"""
    )
    first, second = program.session(), program.session()
    first.reset(0)
    second.reset(0)
    assert first.step("").observation == "0.33333"
    assert first.step("9").observation == "0.333333333"
    assert second.step("").observation == "0.33333"
    copied = first.copy()
    copied.step("3")
    assert first.step("").observation == "0.333333333"
    assert copied.step("").observation == "0.333"
    program.close()


def test_modules_go_with_their_instances(quick):
    """Thousands of instances one after the other fit where only some dozen would at once."""
    program = quick.open("BALLAST = list(range(200_000))\n" + TALLY)
    operations = [Operation(name, 1, 0 if name == "reset" else None) for name in ("make", "reset", "close")]
    for _ in range(8):
        assert all(outcome.error is None for outcome in program.run(operations * 25))


def test_programs_share_nothing(quick):
    source = (
        "class TallyEnv:\n    tally = []\n"
        "    def reset(self, seed=None):\n        return '', {}\n"
        "    def step(self, action):\n        self.tally.append(action)\n"
        "        return str(len(self.tally)), 0.0, False, False, {}\n"
    )
    one, two = quick.open(source).session(), quick.open(source).session()
    one.reset(0)
    two.reset(0)
    assert [one.step("x").observation, one.step("x").observation, two.step("x").observation] == ["1", "2", "1"]


def test_arguments(quick, counter_source):
    with pytest.raises(ValueError, match="max_workers"):
        Sandbox(max_workers=0)
    with pytest.raises(ValueError, match="max_frame_bytes"):
        Sandbox(Limits(max_observation_chars=10**9))
    program = quick.open(counter_source)
    with pytest.raises(TypeError):
        program.session(max_turns=object())
    outcomes = program.run([Operation("step", 77, "x"), Operation("dance", 77), Operation("make", 77)])
    assert type(outcomes[0].error) is ProgramDied
    assert type(outcomes[1].error) is ProgramDied
    assert outcomes[2].error is None

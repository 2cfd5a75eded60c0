"""Frames: what honest workers send arrives unchanged, what hostile ones send cannot do harm."""

import math
import tracemalloc

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spade_envs.sandbox import columns, wire
from spade_envs.sandbox.outbox import Outbox
from spade_envs.sandbox.types import (
    Limits,
    Operation,
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramInfo,
    ProgramQuarantined,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
    ResetResult,
    StepResult,
)

LIMITS = Limits()
NAMES = ("load", "make", "reset", "step", "hint", "solution", "tools", "copy", "sibling", "close")
ANY_TEXT = st.text(st.characters(codec=None), max_size=50)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=20)
TREES = st.recursive(
    SCALARS | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5) | st.integers(0, 9), inner),
    max_leaves=20,
)


def _body(status, payload) -> bytes:
    return wire.encode_reply(status, payload)[wire.HEADER.size :]


def _check(name, outcome) -> None:
    """An accepted outcome has exactly the documented types."""
    if outcome.error is not None:
        assert isinstance(outcome.error, ProgramError)
        assert outcome.value is None
        assert type(str(outcome.error)) is str
        return
    value = outcome.value
    if name == "step":
        assert type(value) is StepResult
        assert type(value.observation) is str
        assert type(value.reward) is float
        assert math.isfinite(value.reward)
        assert type(value.terminated) is bool
        assert type(value.truncated) is bool
        assert type(value.info) is dict
    elif name == "reset":
        assert type(value) is ResetResult
        assert type(value.observation) is str
        assert type(value.info) is dict
    elif name == "load":
        if value is not None:
            assert type(value) is ProgramInfo
    elif name == "tools":
        assert type(value) is list
        assert all(type(schema) is dict for schema in value)
    elif name == "solution":
        assert value is None or all(type(action) is str for action in value)
    elif name == "hint":
        assert value is None or type(value) is str
    else:
        assert value is None


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 2**32), ANY_TEXT | SCALARS.filter(lambda x: x == x))))
def test_requests_arrive_unchanged(operations):
    frame = wire.encode_request([Operation(*operation) for operation in operations])
    (size,) = wire.HEADER.unpack(frame[:4])
    assert size == len(frame) - 4
    assert [tuple(operation) for operation in wire.decode_request(frame[4:])] == operations


@given(st.binary(max_size=300), st.sampled_from(NAMES))
def test_random_bytes(body, name):
    try:
        _, outcome = wire.decode_reply(body, name, LIMITS)
    except wire.WireError:
        return
    _check(name, outcome)


@given(st.one_of(st.integers(-1, 9), SCALARS), TREES, st.sampled_from(NAMES))
@settings(max_examples=500)
def test_forged_structures(status, payload, name):
    try:
        body = msgpack.packb([status, payload])
    except (ValueError, OverflowError, TypeError):
        return
    try:
        _, outcome = wire.decode_reply(body, name, LIMITS)
    except wire.WireError:
        return
    _check(name, outcome)


@given(
    st.lists(st.one_of(SCALARS, st.dictionaries(st.text(max_size=5), SCALARS, max_size=3)), min_size=4, max_size=6),
)
@settings(max_examples=500)
def test_forged_steps(payload):
    try:
        _, outcome = wire.decode_reply(_body(wire.OK, payload), "step", LIMITS)
    except wire.WireError:
        return
    _check("step", outcome)


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_answers(data):
    body = bytearray(_body(wire.OK, ["you see a door", 0.5, False, True, {"turn": 3, "note": "x", "ok": None}]))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, outcome = wire.decode_reply(bytes(body), "step", LIMITS)
    except wire.WireError:
        return
    _check("step", outcome)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x81\xa1a" * 50_000,
        b"\x92\x00\xdd\xff\xff\xff\xff",
        b"\x92\x00\xdf\xff\xff\xff\xff",
        b"\x92\x00\xdb\xff\xff\xff\xff",
        b"\x92\x00\xc6\xff\xff\xff\xff",
        b"\x92\x00\xc9\xff\xff\xff\xff\x01",
        b"\x92\x00\xd6\xff\x00\x00\x00\x00",
        b"\x92\x00\xa2\xed\xa0",
        b"\x92\x00\xc0trailing",
    ],
    ids=["empty", "reserved", "deep", "deep maps", "array", "map", "text", "bytes", "ext", "time", "utf-8", "rest"],
)
@pytest.mark.parametrize("name", ["step", "tools", "make"])
def test_malformed_frames(body, name):
    with pytest.raises(wire.WireError):
        wire.decode_reply(body, name, LIMITS)


@pytest.mark.parametrize("unit", [b"\x90", b"\x80", b"\xcf" + b"\xff" * 8, b"\xa0", b"\xcb" + b"\x00" * 8])
def test_a_frame_of_the_largest_size_cannot_fill_the_memory(unit):
    """Lists in lists blow up most; what is decoded at once stays within a small multiple of the frame cap."""
    cap = wire.reply_cap(LIMITS)
    row = b"\xdc" + wire.MAX_ACTIONS.to_bytes(2, "big") + unit * wire.MAX_ACTIONS
    rows = min(wire.MAX_ACTIONS, cap // len(row))
    body = b"\x92\x00\xdc" + rows.to_bytes(2, "big") + row * rows
    tracemalloc.start()
    try:
        with pytest.raises(wire.WireError):
            wire.decode_reply(body, "step", LIMITS)
        assert tracemalloc.get_traced_memory()[1] < 80 * cap
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 10_000, "{}", "[1]", "[NaN]", '[{"a": NaN}]', '[{"a": ' + "9" * 5_000 + "}]", "nonsense", "[[]]"),
        *('[{"a": 1e999}]', '[{"a": "\\ud800"}]', '[{"function": 5}]', '[{"a": ' + "[" * 900 + "]" * 900 + "}]"),
    ],
    ids=lambda text: text[:14],
)
def test_forged_tool_schemas(text):
    with pytest.raises(wire.WireError):
        wire.decode_reply(_body(wire.OK, text), "tools", LIMITS)


def test_honest_answers():
    step = ["seen", 1.0, True, False, {"score": 3, "note": "ok", "ratio": 0.5, "flag": True, "nothing": None}]
    assert wire.decode_reply(_body(wire.OK, step), "step", LIMITS)[1].value == StepResult(*step)
    assert wire.decode_reply(_body(wire.OK, ["start", {}]), "reset", LIMITS)[1].value == ResetResult("start", {})
    assert wire.decode_reply(_body(wire.OK, None), "tools", LIMITS)[1].value == []
    assert wire.decode_reply(_body(wire.OK, '[{"name": "look"}]'), "tools", LIMITS)[1].value == [{"name": "look"}]
    assert wire.decode_reply(_body(wire.OK, ["a", "b"]), "solution", LIMITS)[1].value == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (wire.RAISED, ["ValueError", "no", 3], ProgramRaised),
        (wire.TIMEOUT, "slow", ProgramTimeout),
        (wire.BROKEN, "slow", ProgramTimeout),
        (wire.PROTOCOL, "shape", ProtocolViolation),
        (wire.POLICY, [[1, 2, "no imports"]], PolicyViolation),
        (wire.LOST, "gone", ProgramDied),
        (wire.SKIPPED, "enough", ProgramQuarantined),
    ],
)
def test_errors_arrive(status, payload, kind):
    got, outcome = wire.decode_reply(_body(status, payload), "step", LIMITS)
    assert got == status
    assert type(outcome.error) is kind
    with pytest.raises(kind):
        outcome.unwrap()


@pytest.mark.parametrize(
    "payload",
    [
        ["x" * (LIMITS.max_observation_chars + 1), 0.0, False, False, {}],
        ["x", math.nan, False, False, {}],
        ["x", math.inf, False, False, {}],
        ["x", 1, False, False, {}],
        ["x", True, False, False, {}],
        ["x", 0.0, 0, False, {}],
        ["x", 0.0, False, None, {}],
        ["x", 0.0, False, False, []],
        ["x", 0.0, False, False, {"a": 2**60}],
        ["x", 0.0, False, False, {"a": math.nan}],
        ["x", 0.0, False, False, {"a": [1]}],
        ["x", 0.0, False, False, {"a": "y" * (wire.MAX_INFO_CHARS + 1)}],
        [b"x", 0.0, False, False, {}],
        ["x", 0.0, False, False],
    ],
    ids=str,
)
def test_steps_that_no_honest_worker_sends(payload):
    with pytest.raises(wire.WireError):
        wire.decode_reply(_body(wire.OK, payload), "step", LIMITS)


STEP_ROWS = st.lists(
    st.tuples(
        st.text(max_size=20),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.booleans(),
        st.dictionaries(st.text(max_size=9), st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9)),
    ),
    min_size=1,
    max_size=20,
)


@given(STEP_ROWS)
def test_rows_arrive_unchanged(rows):
    body = _body(wire.RUN, columns.encode([list(row) for row in rows]))
    status, outcomes = wire.decode_replies(body, ["reset", *["step"] * len(rows), "hint"], 1, LIMITS)
    assert status == wire.OK
    assert [outcome.value for outcome in outcomes] == [StepResult(*row) for row in rows]
    for outcome in outcomes:
        _check("step", outcome)


@given(
    st.lists(st.lists(st.one_of(SCALARS, st.dictionaries(st.text(max_size=5), SCALARS, max_size=3)), max_size=3)),
    st.sampled_from(["step", "reset", "make", "load"]),
)
@settings(max_examples=500)
def test_forged_columns(payload, name):
    try:
        _, outcomes = wire.decode_replies(_body(wire.RUN, payload), [name] * 3, 0, LIMITS)
    except wire.WireError:
        return
    assert 0 < len(outcomes) <= 3
    for outcome in outcomes:
        _check(name, outcome)


@pytest.mark.parametrize("spoilt", range(5))
@given(SCALARS)
def test_columns_with_one_value_of_another_type(spoilt, value):
    kinds = [{str}, {float}, {bool}, {bool}, {dict}]
    row = ["x", 0.5, False, True, {"n": 1}]
    bad = [*row[:spoilt], value, *row[spoilt + 1 :]]
    good = {type(value)} == kinds[spoilt] and value == value and value not in (math.inf, -math.inf)
    body = _body(wire.RUN, columns.encode([row, bad, row]))
    if good:
        assert wire.decode_replies(body, ["step"] * 3, 0, LIMITS)[1][1].value == StepResult(*bad)
    else:
        with pytest.raises(wire.WireError):
            wire.decode_replies(body, ["step"] * 3, 0, LIMITS)


@pytest.mark.parametrize(
    "info",
    [
        {"n": 2**53 + 1},
        {"n": -(2**60)},
        {"n": math.nan},
        {"n": math.inf},
        {"n": [1]},
        {"k" * (wire.MAX_NAME + 1): 1},
        {"n": "y" * (wire.MAX_INFO_CHARS + 1)},
        {f"{n:0200}": "y" * 100 for n in range(64)},
    ],
    ids=lambda info: str(info)[:20],
)
def test_infos_in_columns_that_no_honest_worker_sends(info):
    row = ["x", 0.0, False, False, {"n": 1}]
    body = _body(wire.RUN, columns.encode([row, [*row[:4], info]]))
    with pytest.raises(wire.WireError):
        wire.decode_replies(body, ["step"] * 2, 0, LIMITS)


def test_columns_answer_what_was_asked():
    rows = columns.encode([["x", 0.0, False, False, {}]] * 2)
    for names in (["step"], ["step", "reset"], ["reset", "step"], ["hint", "hint"]):
        with pytest.raises(wire.WireError):
            wire.decode_replies(_body(wire.RUN, rows), names, 0, LIMITS)
    uneven = [rows[0][:1], *rows[1:]]
    with pytest.raises(wire.WireError):
        wire.decode_replies(_body(wire.RUN, uneven), ["step"] * 2, 0, LIMITS)


def test_large_rows_go_in_several_frames():
    sent: list[bytes] = []
    outbox = Outbox(sent.append, 5_000)
    rows = [["y" * size, 0.0, False, False, {}] for size in (10, 3_000, 3_000, 10, 4_000, 10)]
    for row in rows:
        outbox.put_row("step", row)
    outbox.put_row("reset", ["start", {}])
    outbox.flush()
    stream, names, outcomes = b"".join(sent), ["step"] * 6 + ["reset"], []
    while stream:
        (size,) = wire.HEADER.unpack(stream[:4])
        assert size <= 5_000
        outcomes += wire.decode_replies(stream[4 : 4 + size], names, len(outcomes), LIMITS)[1]
        stream = stream[4 + size :]
    assert [outcome.value for outcome in outcomes] == [*(StepResult(*row) for row in rows), ResetResult("start", {})]

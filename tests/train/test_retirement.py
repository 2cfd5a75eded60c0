"""When environments are retired, and how the memory keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest
from doubles import record

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.record import PlayStatistics
from spade_train.ledger import Entry, write
from spade_train.retirement import RetirementRules, retirement

RULES = RetirementRules(plays=8, stagnant_plays=12)


def _statistics(plain: list[float], hinted: list[float] | None = None) -> PlayStatistics:
    return PlayStatistics().add(plain, hinted=False).add(hinted or [], hinted=True)


@pytest.mark.parametrize(
    ("plain", "hinted", "reason"),
    [
        ([1.0] * 7, None, ""),  # not played often enough
        ([1.0] * 8, None, "mastered"),
        ([1.0] * 9 + [0.0], None, ""),  # 0.9 is not above 0.9
        ([0.0] * 8, [0.0] * 4, "hopeless"),
        ([0.0] * 8, [1.0] * 4, ""),  # the hint helps: a frontier
        ([0.0] * 8, None, ""),  # nobody tried with a hint
        ([0.0, 1.0] * 6, [1.0] * 4, "stagnant"),  # as good in the first six as in the last six
        ([0.0] * 6 + [1.0] * 6, [1.0] * 4, ""),  # regret fell from 1 to 0
        ([1.0] * 6 + [0.0] * 6, [1.0] * 4, "stagnant"),  # it rose
        ([0.0, 1.0] * 5, [1.0] * 4, ""),  # too few plays to say
    ],
)
def test_verdicts(plain: list[float], hinted: list[float] | None, reason: str) -> None:
    assert retirement(_statistics(plain, hinted), plain, RULES).partition(":")[0] == reason


def test_reasons_give_the_figures() -> None:
    assert retirement(_statistics([1.0] * 10), [1.0] * 10, RULES) == "mastered: win rate 1.00 in 10 plain plays"
    plain = [0.0, 1.0, 1.0] * 4
    said = retirement(_statistics(plain, [1.0]), plain, RULES)
    assert said == "stagnant: regret fell by 0.00 from the first to the last 6 of 12 plain plays"


def test_stagnation_can_be_left_out() -> None:
    plain = [0.0, 1.0] * 50
    assert retirement(_statistics(plain), plain, RetirementRules(stagnant_plays=0)) == ""


def test_the_memory_keeps_the_reason_and_takes_it_back(tmp_path: Path) -> None:
    one, other = record(1), record(2)
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:
        assert memory.retired() == {}
        write(memory, Entry([one, other], [(one.id, False, (1.0,) * 4)]), run="r", step=1, rules=RULES)
        assert memory.retired() == {}
        position = memory.position()
        write(memory, Entry([], [(one.id, False, (1.0,) * 4)]), run="r", step=2, rules=RULES)
        assert memory.retired() == {one.id: "mastered: win rate 1.00 in 8 plain plays"}
        write(memory, Entry([], [(one.id, False, (1.0,) * 4)]), run="r", step=3, rules=RULES)
        assert memory.retired() == {one.id: "mastered: win rate 1.00 in 8 plain plays"}  # the first reason stays
        assert memory.returns(one.id, hinted=False) == [1.0] * 12
        assert memory.returns(one.id, hinted=True) == []
        memory.rollback("other", position)
        assert memory.retired()
        memory.rollback("r", position)
        assert memory.retired() == {}
        with pytest.raises(KeyError, match="add the record"):
            memory.retire("0" * 64, "mastered")
        memory.retire(one.id, "by hand")
    with Memory.open(tmp_path, read_only=True) as memory:
        assert memory.retired() == {one.id: "by hand"}


def test_show_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from spade_envs.cli.browse import show

    one = record(1)
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:
        memory.add(one)
        memory.retire(one.id, "hopeless: win rate 0.00 in 16 plain plays, 0.00 with the hint")
    show(one.id, memory=tmp_path, as_json=False)
    assert "retired  hopeless: win rate 0.00" in capsys.readouterr().out

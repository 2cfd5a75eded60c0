"""Truncated importance sampling against the formula written out."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOTrainer

from spade_train.late_rows import LateRows, check_late
from spade_train.off_policy import by_token, ratio_metrics, truncated_ratio
from spade_train.rows import Row
from spade_train.trl_adapter import TrlContractError


def test_ratio_by_hand() -> None:
    now = torch.tensor([[math.log(0.5), math.log(0.9), math.log(0.1), -3.0]])
    sampling = torch.tensor([[math.log(0.25), math.log(0.1), math.log(0.4), -7.0]])
    mask = torch.tensor([[1, 1, 1, 0]])
    # 0.5 / 0.25 = 2; 0.9 / 0.1 = 9, cut at 3; 0.1 / 0.4; not sampled: 1
    assert truncated_ratio(now, sampling, mask, 3.0).tolist() == [pytest.approx([2.0, 3.0, 0.25, 1.0])]


def test_unknown_log_probabilities_are_not_corrected() -> None:
    now, sampling = torch.tensor([-1.0, -1.0]), torch.tensor([float("nan"), float("nan")])
    assert truncated_ratio(now, sampling, torch.tensor([1, 0]), 3.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("setting", [{}, {"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.1}, {"repetition_penalty": 1.1}])
def test_log_probabilities_of_a_cut_distribution_are_measured_again(setting: dict[str, float]) -> None:
    whole = {"top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
    trainer = SimpleNamespace(
        args=SimpleNamespace(per_device_train_batch_size=8, **{**whole, **setting}),
        use_vllm=False, processing_class=SimpleNamespace(pad_token_id=0),
        accelerator=SimpleNamespace(device="cpu"), model=None,
        _get_per_token_logps_and_entropies=lambda model, ids, seen, width, batch_size: (
            torch.full((len(ids), width), -2.0), None, None
        ),
    )  # fmt: skip
    by_engine, by_none = Row("designer", "s", [1]), Row("designer", "s", [1])
    by_engine.sampled([5, 6], [-0.5, -0.25])
    by_none.sampled([5, 6], None)
    LateRows(trainer, 3.0).remember([by_engine, by_none])
    assert by_none.logprobs == [-2.0, -2.0]
    assert by_engine.logprobs == ([-2.0, -2.0] if setting else [-0.5, -0.25])


def test_ratio_agrees_with_the_formula_token_by_token() -> None:
    generator = torch.Generator().manual_seed(0)
    now, sampling = (-4 * torch.rand(5, 7, generator=generator) for _ in range(2))
    mask = torch.rand(5, 7, generator=generator) < 0.7
    found = truncated_ratio(now, sampling, mask.long(), 1.5)
    for row in range(5):
        for token in range(7):
            expected = min(math.exp(float(now[row, token] - sampling[row, token])), 1.5) if mask[row, token] else 1.0
            assert float(found[row, token]) == pytest.approx(expected, rel=1e-5)


def test_metrics() -> None:
    assert ratio_metrics([], 3.0) == {}
    assert ratio_metrics([0.5, 3.0, 1.0, 3.0], 3.0) == {
        "off_policy/ratio_mean": pytest.approx(7.5 / 4),
        "off_policy/ratio_max": 3.0,
        "off_policy/truncated_share": 0.5,
    }


def test_advantages_by_token() -> None:
    # the second row is late: 2 x (0.5, 3); what lies behind its end keeps the row's advantage and is masked anyway
    values = by_token(torch.tensor([1.0, 2.0]), [[], [0.5, 3.0]], 3)
    assert values.tolist() == [[1.0, 1.0, 1.0], [1.0, 6.0, 2.0]]


def test_installed_trl_keeps_the_contract() -> None:
    check_late()


class _Changed(GRPOTrainer):  # type: ignore[misc]
    def _get_per_token_logps_and_entropies(self, batch: Any) -> None: ...


def test_other_trl_is_refused_with_what_to_do() -> None:
    with pytest.raises(TrlContractError, match="regenerate_every: 1"):
        check_late(_Changed)

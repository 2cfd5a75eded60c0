"""Less padding: the same log-probabilities, the same gradient, the same update."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_model
from tinyrun import tiny_training
from trl import GRPOTrainer
from trl.trainer.utils import add_fused_lm_head

from spade_train.padding import PaddingContractError, by_length, can_pack, less_padding, padding_share


def _batch(lengths: list[tuple[int, int]], width: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, 300, (len(lengths), sum(width)), generator=generator)
    mask = torch.zeros_like(ids)
    for row, (prompt, answer) in enumerate(lengths):
        mask[row, width[0] - prompt : width[0] + answer] = 1
    return ids * mask, mask


@pytest.fixture(scope="module")
def stock(tokenizer: Any) -> Any:
    """As much of a trainer as scoring touches, with TRL's own method."""
    model = tiny_model(tokenizer)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    trainer = SimpleNamespace(
        model=model,
        accelerator=SimpleNamespace(is_main_process=True, autocast=lambda: torch.autocast("cpu", enabled=False)),
    )
    trainer.loss_type, trainer._buffered_inputs, trainer._prepare_inputs = "dapo", None, None
    trainer._get_per_token_logps_and_entropies = GRPOTrainer._get_per_token_logps_and_entropies.__get__(trainer)
    return trainer


LENGTHS = [(3, 9), (12, 2), (1, 1), (7, 20), (5, 5)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [None, 2])
def test_same_scores_and_gradients(stock: Any, packed: bool, size: int | None) -> None:
    ids, mask = _batch(LENGTHS, (14, 24))
    model, weights = stock.model, mask[:, -24:] * torch.linspace(-1, 1, 24)
    results = []
    less = SimpleNamespace(**vars(stock))
    less_padding(less, packed=packed)
    for trainer in (stock, less):
        model.zero_grad()
        logps, entropies, aux = trainer._get_per_token_logps_and_entropies(
            model, ids, mask, 24, batch_size=size, compute_entropy=True
        )
        assert aux is None
        (logps * weights).sum().backward()
        gradient = torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
        results.append((logps.detach() * mask[:, -24:], entropies.detach() * mask[:, -24:], gradient))
    for one, other in zip(*results):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_without_entropy_and_with_one_long_row(stock: Any) -> None:
    ids, mask = _batch([(14, 24)], (14, 24))
    less = SimpleNamespace(**vars(stock))
    less_padding(less)
    with torch.no_grad():
        first = stock._get_per_token_logps_and_entropies(stock.model, ids, mask, 24)
        second = less._get_per_token_logps_and_entropies(stock.model, ids, mask, 24)
    assert second[1] is None
    torch.testing.assert_close(first[0], second[0])


def test_the_model_sees_fewer_columns(stock: Any) -> None:
    ids, mask = _batch(LENGTHS, (14, 24))
    seen: list[int] = []
    less = SimpleNamespace(**vars(stock))
    handle = stock.model.model.register_forward_pre_hook(
        lambda module, arguments, fields: seen.append(fields["input_ids"].numel()), with_kwargs=True
    )
    for packed in (False, True):
        less = SimpleNamespace(**vars(stock))
        less_padding(less, packed=packed)
        less._get_per_token_logps_and_entropies(stock.model, ids, mask, 24)
    handle.remove()
    assert seen == [5 * (12 + 20), sum(map(sum, LENGTHS))]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60)), min_size=8, max_size=8))
def test_order_moves_whole_rows(lengths: list[tuple[int, int]]) -> None:
    _, mask = _batch(lengths, (30, 60))
    names = torch.arange(8)
    whole = {"prompt_mask": mask[:, :30], "completion_mask": mask[:, 30:], "name": names, "items": torch.tensor(7.0)}
    batches = [
        {name: value if value.ndim == 0 else value[start : start + 2] for name, value in whole.items()}
        | {"text": [str(index) for index in range(start, start + 2)], "nothing": None}
        for start in range(0, 8, 2)
    ]
    made = by_length(batches)
    order = torch.cat([batch["name"] for batch in made]).tolist()
    assert sorted(order) == list(range(8))
    assert [int(text) for batch in made for text in batch["text"]] == order
    assert [sum(lengths[index]) for index in order] == sorted(map(sum, lengths), reverse=True)
    for batch in made:
        assert torch.equal(batch["prompt_mask"].sum(1), torch.tensor([lengths[i][0] for i in batch["name"]]))
        assert float(batch["items"]) == 7.0
        assert batch["nothing"] is None
    before = padding_share(lengths, 2, trimmed=False)
    assert padding_share(lengths, 2, trimmed=True) <= before + 1e-12
    assert 0.0 <= padding_share(lengths, 2, trimmed=True, ordered=True) < 1.0


def test_share_by_hand() -> None:
    lengths = [(2, 8), (1, 1), (2, 8), (1, 1)]
    assert padding_share(lengths, 2, trimmed=False) == pytest.approx(1 - 24 / 40)
    assert padding_share(lengths, 2, trimmed=True) == pytest.approx(1 - 24 / 40)
    assert padding_share(lengths, 2, trimmed=True, ordered=True) == pytest.approx(0.0)


def _trained(folder: Path, *, stock: bool) -> tuple[dict[str, torch.Tensor], list[int]]:
    """Return the adapter's gradient of one step and the columns of each micro-batch."""
    widths: list[int] = []
    gradients: dict[str, torch.Tensor] = {}
    with tiny_training(folder, 1, documents=2, per_device_train_batch_size=4) as training:
        trainer = training.trainer
        for name in ("_get_per_token_logps_and_entropies", "_prepare_inputs"):
            vars(trainer).pop(name, None)
        if not stock:
            less_padding(trainer)
        trainer.model.base_model.model.model.register_forward_pre_hook(
            lambda module, arguments, fields: (
                widths.append(fields["input_ids"].size(1)) if torch.is_grad_enabled() else None
            ),
            with_kwargs=True,
        )
        trainer.add_callback(_Gradients(gradients, trainer.model))
        trainer.train()
    return gradients, widths


class _Gradients:
    """Copies the gradient before the optimiser uses it."""

    def __init__(self, into: dict[str, torch.Tensor], model: Any) -> None:
        self._into, self._model = into, model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(name)

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        for name, weight in self._model.named_parameters():
            if weight.grad is not None:
                self._into[name] = weight.grad.clone()


def test_update_of_a_cycle_is_the_same_and_smaller(tmp_path: Path) -> None:
    stock, wide = _trained(tmp_path / "a" / "run", stock=True)
    less, narrow = _trained(tmp_path / "b" / "run", stock=False)
    assert stock.keys() == less.keys()
    scale = max(float(value.abs().max()) for value in stock.values())
    assert scale > 0
    for name, value in stock.items():
        torch.testing.assert_close(less[name], value, rtol=1e-3, atol=1e-5 * scale)
    assert len(set(wide)) == 1
    assert narrow == sorted(narrow, reverse=True) or sum(narrow) < sum(wide)
    assert sum(narrow) < 0.9 * sum(wide)


def test_only_flash_attention_packs(stock: Any) -> None:
    assert not can_pack(stock.model)
    config = SimpleNamespace(
        _attn_implementation="flash_attention_2", layer_types=["full_attention", "linear_attention"]
    )
    assert not can_pack(SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config)))
    config.layer_types = ["full_attention", "sliding_attention"]
    assert can_pack(SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config)))


def test_other_trl_is_refused() -> None:
    other = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda model, ids: None, _prepare_inputs=None, _buffered_inputs=None
    )
    with pytest.raises(PaddingContractError, match=r"trl==1\.16"):
        less_padding(other)

"""Less padding in the update.

TRL 1.16 pads a whole generation batch to its longest prompt and its longest completion, shuffles it and cuts it into
micro-batches of that width; GRPO has no packing there. Rows of self-play differ much (a one-turn episode beside a
program of thousands of tokens), so most of what the model then computes is padding. Three things are done about it:

- rows of like length share a micro-batch, the longest first;
- a micro-batch is cut to its own longest prompt and completion before the model sees it;
- with flash attention a micro-batch becomes one sequence without any padding, told apart by position ids.

The last two are exact up to rounding under every loss. The first is exact where the loss is a sum over the whole
batch divided by one number (``dapo``, ``cispo``); under ``bnpo``, which averages within a micro-batch, rows keep the
order that TRL gave them.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

SUM_LOSSES = ("dapo", "cispo")
"""Losses whose value does not depend on how rows are divided into micro-batches."""

_ATTENTION_LAYERS = {"full_attention", "sliding_attention"}
_ARGUMENTS = (
    "model",
    "input_ids",
    "attention_mask",
    "logits_to_keep",
    "batch_size",
    "compute_entropy",
    "compute_aux_loss",
)


class PaddingContractError(RuntimeError):
    """The installed TRL scores rows through another interface than the one that is known here."""


def by_length(batches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return micro-batches of the same rows and sizes, in which rows are ordered by length, the longest first.

    Args:
        batches: micro-batches of equally many rows, as TRL buffers them: tensors and lists with one entry for each
            row, and values that concern all rows.
    """
    lengths = torch.cat([batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1) for batch in batches])
    order = torch.argsort(lengths, descending=True, stable=True)
    rows = len(lengths) // len(batches)
    result: list[dict[str, Any]] = [{} for _ in batches]
    for name, first in batches[0].items():
        for number, batch in enumerate(result):
            mine = order[number * rows : (number + 1) * rows]
            if isinstance(first, torch.Tensor) and first.ndim:
                batch[name] = torch.cat([one[name] for one in batches])[mine]
            elif isinstance(first, list):
                values = [value for one in batches for value in one[name]]
                batch[name] = [values[index] for index in mine.tolist()]
            else:
                batch[name] = first
    return result


def padding_share(lengths: Sequence[tuple[int, int]], rows: int, *, trimmed: bool, ordered: bool = False) -> float:
    """Return which share of what the model computes is padding.

    Args:
        lengths: of prompt and completion of each row.
        rows: of a micro-batch.
        trimmed: whether a micro-batch is as wide as its own longest prompt and completion, not the batch's.
        ordered: whether rows are ordered by length.
    """
    mine = sorted(lengths, key=sum, reverse=True) if ordered else list(lengths)
    computed = 0
    for start in range(0, len(mine), rows):
        batch = mine[start : start + rows]
        widest = batch if trimmed else mine
        computed += len(batch) * (max(prompt for prompt, _ in widest) + max(answer for _, answer in widest))
    return 1.0 - sum(map(sum, mine)) / computed


def less_padding(trainer: Any, *, packed: bool | None = None) -> None:
    """Make a ``GRPOTrainer`` compute less padding.

    Args:
        trainer: changed in place.
        packed: whether micro-batches become one sequence; by default if the policy attends with a flash kernel.

    Raises:
        PaddingContractError: if the installed TRL works otherwise than 1.16.
    """
    score, prepare = trainer._get_per_token_logps_and_entropies, trainer._prepare_inputs
    found = list(inspect.signature(score).parameters)[: len(_ARGUMENTS)]
    if found != list(_ARGUMENTS) or not hasattr(trainer, "_buffered_inputs"):
        raise PaddingContractError(
            f"GRPOTrainer scores rows through ({', '.join(found)}), expected ({', '.join(_ARGUMENTS)}): "
            f"pip install 'trl==1.16.*'"
        )
    packs = can_pack(trainer.model) if packed is None else packed

    def scored(
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **images: Any,
    ) -> Any:
        if compute_aux_loss or any(value is not None for value in images.values()):
            return score(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size,
                compute_entropy,
                compute_aux_loss,
                **images,
            )
        size = batch_size or len(input_ids)
        order = torch.argsort(attention_mask.sum(1), stable=True) if size < len(input_ids) else None
        parts: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        for start in range(0, len(input_ids), size):
            mine = slice(start, start + size) if order is None else order[start : start + size]
            ids, mask = input_ids[mine], attention_mask[mine]
            if packs:
                with trainer.accelerator.autocast():
                    parts.append(_packed(model, ids, mask, logits_to_keep, compute_entropy))
            else:
                left, right = _bounds(mask, logits_to_keep)
                ids, mask = (one[:, left : one.size(1) - logits_to_keep + right] for one in (ids, mask))
                logps, entropies, _ = score(model, ids, mask, right, None, compute_entropy, False)
                wide = None if entropies is None else _widened(entropies, logits_to_keep)
                parts.append((_widened(logps, logits_to_keep), wide))
        logps = torch.cat([one for one, _ in parts])
        entropies = torch.cat([one for _, one in parts if one is not None]) if compute_entropy else None
        if order is not None:
            back = torch.argsort(order)
            logps, entropies = logps[back], None if entropies is None else entropies[back]
        return logps, entropies, None

    def prepared(generation_batch: Any) -> Any:
        before = trainer._buffered_inputs
        inputs = prepare(generation_batch)
        if trainer._buffered_inputs is before or not trainer.model.training:
            return inputs
        trainer._buffered_inputs = by_length(trainer._buffered_inputs)
        return trainer._buffered_inputs[trainer._step % trainer.args.steps_per_generation]

    trainer._get_per_token_logps_and_entropies = scored
    if trainer.loss_type in SUM_LOSSES:
        trainer._prepare_inputs = prepared


def can_pack(model: Any) -> bool:
    """Return whether rows may follow each other in one sequence: flash attention, and no layer that scans along it."""
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or _ATTENTION_LAYERS)
    return layers <= _ATTENTION_LAYERS and "flash" in str(getattr(config, "_attn_implementation", ""))


def _bounds(mask: torch.Tensor, keep: int) -> tuple[int, int]:
    """Return the first column of a prompt and how many of a completion any row uses (at least one)."""
    used = mask.bool().any(0)
    prompt, answer = used[:-keep].nonzero(), used[-keep:].nonzero()
    first = int(prompt[0]) if len(prompt) else mask.size(1) - keep - 1
    return first, int(answer[-1]) + 1 if len(answer) else 1


def _widened(values: torch.Tensor, width: int) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, width - values.size(1)))


def _packed(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int, entropy: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Score all rows as one sequence; positions start again with every row, which keeps rows apart."""
    real = mask.bool()
    positions = (mask.cumsum(1) - 1)[real]
    labels = ids.masked_fill(~real, -100)
    labels[:, :-keep] = -100
    following = torch.cat([labels[:, 1:], labels.new_full((len(labels), 1), -100)], 1)[real]
    outputs = model(
        input_ids=ids[real][None], position_ids=positions[None], shift_labels=following[None], fused_lm_head=True
    )
    wanted = real.clone()  # a token's log-probability stands at the token before it
    wanted[:, :-keep] = False

    def spread(values: torch.Tensor) -> torch.Tensor:
        flat = values[0][following != -100]
        return values.new_zeros(mask.shape).masked_scatter(wanted, flat)[:, -keep:]

    return spread(outputs.log_probs), spread(outputs.entropy) if entropy else None

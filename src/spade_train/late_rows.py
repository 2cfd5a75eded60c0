"""What a trainer must do for rows that are trained several updates late: log-probabilities, ratios, advantages.

A stock ``GRPOTrainer`` with vLLM corrects such rows itself: it gets the log-probabilities of sampling time with every
row and multiplies by the truncated ratio. Without vLLM it takes all rows for its own policy's. Then
:class:`LateRows` scores the designer's rows when they are sampled and again when they are due, and
:func:`correct_late_rows` makes the trainer use ``advantage x ratio`` for each token, which its loss accepts as
advantages of shape (B, T). Two private methods of TRL 1.16 are used; :func:`check_late` compares them with what this
file was written against.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from trl import GRPOTrainer

from spade_train.off_policy import by_token, ratio_metrics, truncated_ratio
from spade_train.rows import Row
from spade_train.trl_adapter import TrlContractError

_SCORING = ("self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size")
_BATCH = ("self", "inputs")
_MARK = "_spade_corrects_late_rows"


def check_late(trainer_class: type = GRPOTrainer) -> None:
    """Check the private methods that are used.

    Raises:
        TrlContractError: if one is missing or takes other parameters than TRL 1.16's.
    """
    for name, expected in (
        ("_get_per_token_logps_and_entropies", _SCORING),
        ("_generate_and_score_completions", _BATCH),
    ):
        method = getattr(trainer_class, name, None)
        found = tuple(inspect.signature(method).parameters) if method is not None else ()
        if found[: len(expected)] != expected:
            raise TrlContractError(
                f"GRPOTrainer.{name} takes {found or 'nothing: it is gone'}; expected {expected}. Install a tested "
                f"version: pip install 'trl==1.16.*', or train with regenerate_every: 1, which does not need it"
            )


def corrects_itself(trainer: Any) -> bool:
    """Whether the trainer corrects late rows by the log-probabilities that come with them."""
    return bool(trainer.use_vllm and trainer.vllm_importance_sampling_correction)


class LateRows:
    """Scores rows with the policy of a trainer as it is now.

    Args:
        trainer: a :class:`trl.GRPOTrainer`.
        cap: greatest ratio.
    """

    def __init__(self, trainer: Any, cap: float) -> None:
        self._trainer, self._cap = trainer, cap

    def remember(self, rows: Sequence[Row]) -> None:
        """Give rows that have just been sampled their log-probabilities, where the backend gave none.

        An engine that cuts the distribution off (top-p and the like) gave those of what was left of it; the ratio
        needs the same measure twice, so such rows are scored again.

        Collective under FSDP and DeepSpeed: every rank must bring equally many rows.
        """
        bare = [row for row in rows if not row.scored or _cut_off(self._trainer.args)]
        if not bare or corrects_itself(self._trainer):
            return
        for row, values in zip(bare, self.score(bare), strict=True):
            row.logprobs = [value * sampled for value, sampled in zip(values, row.mask)]
            row.scored = True

    def correct(self, rows: Sequence[Row]) -> dict[str, float]:
        """Give late rows the ratios for the update that comes; return metrics.

        Collective under FSDP and DeepSpeed: every rank must bring equally many late rows.
        """
        late = [row for row in rows if row.age]
        if not late or corrects_itself(self._trainer):
            return {}
        counted = []
        for row, now in zip(late, self.score(late), strict=True):
            after, before, mask = torch.tensor(now), torch.tensor(row.logprobs), torch.tensor(row.mask)
            row.ratio = truncated_ratio(after, before, mask, self._cap).tolist()
            counted += [ratio for ratio, sampled in zip(row.ratio, row.mask) if sampled]
        return {"off_policy/rows": float(len(late)), **ratio_metrics(counted, self._cap)}

    def score(self, rows: Sequence[Row]) -> list[list[float]]:
        """Return the log-probability of each completion token, at the trainer's temperature, without gradient."""
        pad = int(self._trainer.processing_class.pad_token_id)
        device = self._trainer.accelerator.device
        result: list[list[float]] = []
        size = int(self._trainer.args.per_device_train_batch_size)
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            ids, seen, width = _padded(chunk, pad)
            with torch.no_grad():
                values = self._trainer._get_per_token_logps_and_entropies(
                    self._trainer.model, ids.to(device), seen.to(device), width, batch_size=len(chunk)
                )[0]
            result += [values[index, : len(row.completion_ids)].float().tolist() for index, row in enumerate(chunk)]
        return result


def _cut_off(args: Any) -> bool:
    """Whether turns are sampled from less than the whole distribution, or from another one than the update scores."""
    return bool((args.top_p or 1.0) < 1.0 or args.top_k or args.min_p or (args.repetition_penalty or 1.0) != 1.0)


def _padded(rows: Sequence[Row], pad: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return ids and attention mask, prompts padded on the left, completions on the right, and the latter's width."""
    left = max(len(row.prompt_ids) for row in rows)
    right = max(len(row.completion_ids) for row in rows)
    ids = torch.full((len(rows), left + right), pad)
    seen = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        span = slice(left - len(row.prompt_ids), left + len(row.completion_ids))
        ids[index, span] = torch.tensor(row.context)
        seen[index, span] = 1
    return ids, seen, right


def correct_late_rows(trainer: Any, batch: Callable[[], Sequence[Row]]) -> None:
    """Make a trainer weight the tokens of late rows by their ratios.

    Args:
        trainer: a :class:`trl.GRPOTrainer`; the method of this one object is wrapped.
        batch: returns the rows of this rank's latest rollout, in the order in which the trainer got them.
    """
    check_late(type(trainer))
    generate = trainer._generate_and_score_completions

    def corrected(inputs: Any) -> Any:
        output = generate(inputs)
        ratios = [row.ratio for row in batch()]
        if any(ratios):
            output["advantages"] = by_token(output["advantages"], ratios, output["completion_ids"].shape[1])
        return output

    trainer._generate_and_score_completions = corrected
    setattr(trainer, _MARK, True)


def is_corrected(trainer: Any) -> bool:
    """Whether late rows are trained as such, by :func:`correct_late_rows` or by the trainer itself."""
    return corrects_itself(trainer) or bool(getattr(trainer, _MARK, False))

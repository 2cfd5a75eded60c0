"""How a token is drawn in a batch: by inverse transform, with a number of its own for each conversation and step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spade_envs.models.base import Sampling

if TYPE_CHECKING:
    import torch


class InverseTransform:
    """A logits processor that leaves one token: the one whose share of the distribution holds the row's number."""

    def __init__(self, uniforms: torch.Tensor, prompt_width: int, sampling: Sampling) -> None:
        self._uniforms, self._width = uniforms, prompt_width  # (batch, steps) in [0, 1)
        self._temperature, self._top_p = sampling.temperature, sampling.top_p

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Map (batch, vocabulary) scores to 0 for the drawn token and -inf for the others."""
        import torch

        probabilities = torch.softmax(scores.float() / self._temperature, dim=-1)
        order = None
        if self._top_p < 1:
            # The smallest set of most likely tokens that holds top_p (Holtzman et al. 2020, nucleus sampling).
            probabilities, order = probabilities.sort(dim=-1, descending=True, stable=True)
            before = probabilities.cumsum(dim=-1) - probabilities
            probabilities = probabilities.masked_fill(before >= self._top_p, 0.0)
        cumulated = probabilities.cumsum(dim=-1)
        number = self._uniforms[:, input_ids.shape[1] - self._width].unsqueeze(1) * cumulated[:, -1:]
        # Rounding may put the number on the last edge; the last token with any probability takes it then.
        last = (probabilities > 0).int().cumsum(dim=-1).argmax(dim=-1, keepdim=True)
        choice = torch.minimum(torch.searchsorted(cumulated, number, right=True), last)
        if order is not None:
            choice = order.gather(1, choice)
        return torch.full_like(scores, float("-inf")).scatter_(1, choice, 0.0)


def uniforms(seed: int, index: int, steps: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return ``steps`` numbers in [0, 1) that depend on the seed and the index alone."""
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed & ((1 << 64) - 1), index))))
    return generator.random(steps, dtype=np.float32)

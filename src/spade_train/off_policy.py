"""Truncated importance sampling for rows that are trained several updates after they were sampled. Pure torch.

The gradient of a row that an older policy sampled is that of the present policy when each token is weighted by
``pi_now(token) / pi_sampling(token)``. The ratio is cut off at a cap, so that single tokens cannot dominate (Ionides
2008, doi:10.1198/106186008X320456).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def truncated_ratio(now: torch.Tensor, sampling: torch.Tensor, mask: torch.Tensor, cap: float) -> torch.Tensor:
    """Return ``min(exp(now - sampling), cap)`` where ``mask`` is 1, and 1 elsewhere.

    A token whose log-probability is not known (NaN) gets 1 too.

    Args:
        now: log-probabilities of the tokens under the policy that is updated, shape (…, T).
        sampling: those under the policy that sampled them, same shape.
        mask: 1 for sampled tokens, same shape.
        cap: greatest ratio.
    """
    ratio = torch.exp(torch.nan_to_num(now - sampling, nan=0.0)).clamp(max=cap)
    return torch.where(mask.bool(), ratio, torch.ones_like(ratio))


def ratio_metrics(ratios: Sequence[float], cap: float) -> dict[str, float]:
    """Return mean and greatest ratio of sampled tokens (after the cap), and the share that was cut off."""
    if not ratios:
        return {}
    return {
        "off_policy/ratio_mean": sum(ratios) / len(ratios),
        "off_policy/ratio_max": max(ratios),
        "off_policy/truncated_share": sum(ratio >= cap for ratio in ratios) / len(ratios),
    }


def by_token(advantages: torch.Tensor, ratios: Sequence[Sequence[float]], length: int) -> torch.Tensor:
    """Return advantages of shape (B, T): each row's times its ratios; rows without ratios keep theirs.

    Args:
        advantages: shape (B,).
        ratios: for each row one factor for each of its tokens, or nothing.
        length: T, to which rows are padded on the right.
    """
    factors = torch.ones(len(ratios), length, dtype=advantages.dtype)
    for index, row in enumerate(ratios):
        if row:
            factors[index, : len(row)] = torch.tensor(row, dtype=advantages.dtype)
    return advantages[:, None] * factors.to(advantages.device)

"""How a token is drawn from logits: temperature, truncations, and a number of its own for every turn and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

_HARMLESS = {
    "max_new_tokens", "max_length", "do_sample", "pad_token_id", "bos_token_id", "eos_token_id", "disable_compile",
    "transformers_version", "_from_model_config", "use_cache", "cache_implementation",
}  # fmt: skip
_DEFAULTS = vars(GenerationConfig())
_KNOWN = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


@dataclass(frozen=True, slots=True)
class Draw:
    """Settings of sampling, applied in the order in which ``generate`` applies them."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    @classmethod
    def from_generation_config(cls, config: Any, own: Any = None) -> Draw:
        """Take the settings of a ``GenerationConfig``.

        Args:
            config: the settings of a call.
            own: the model's, which ``generate`` takes where ``config`` says nothing.

        Raises:
            ValueError: if a setting is not one of these five.
        """
        merged: dict[str, Any] = {}
        for one in (own, config):
            merged |= {
                name: value for name, value in (vars(one) if one is not None else {}).items() if _says(name, value)
            }
        if other := sorted(name for name in merged if merged[name] and name not in _HARMLESS and name not in _KNOWN):
            raise ValueError(f"sampling with {', '.join(other)} is not supported")
        settings: dict[str, Any] = {name: type(own)(merged.get(name) or own) for name, own in _KNOWN.items()}
        return cls(**settings) if config.do_sample else cls(0.0, repetition_penalty=settings["repetition_penalty"])

    def draw(
        self,
        logits: torch.Tensor,
        temperatures: Sequence[float],
        uniforms: Sequence[float],
        seen: torch.Tensor | None,
        top_ps: Sequence[float] | None = None,
    ) -> tuple[list[int], list[float]]:
        """Draw one token for each row, by inverse transform.

        Args:
            logits: (rows, vocabulary), float32.
            temperatures: of each row; 0 takes the likeliest token.
            uniforms: a number in [0, 1) for each row.
            seen: (rows, vocabulary), the tokens of the context, where there is a repetition penalty.
            top_ps: of each row, in the place of this object's own.

        Returns:
            Tokens and their log-probabilities under the distribution that they were drawn from (what TRL has vLLM
            report as ``processed_logprobs``), for temperature 0 under the untempered one.
        """
        if seen is not None:
            # Keskar et al. 2019 (CTRL): divide what is positive, multiply what is negative.
            penalised = torch.where(logits < 0, logits * self.repetition_penalty, logits / self.repetition_penalty)
            logits = torch.where(seen, penalised, logits)
        greedy = [index for index, temperature in enumerate(temperatures) if temperature == 0]
        if any(temperature not in (0.0, 1.0) for temperature in temperatures):
            scale = torch.tensor([temperature or 1.0 for temperature in temperatures], device=logits.device)
            logits = logits / scale[:, None]
        scores = logits
        if len(greedy) < len(temperatures):
            scores = self._truncated(scores, top_ps or [self.top_p] * len(temperatures))
        logprobs = torch.log_softmax(scores, dim=-1)
        number = torch.tensor(uniforms, dtype=torch.float32, device=logits.device)[:, None]
        tokens = _inverse_transform(logprobs.exp(), number)
        if greedy:
            tokens[greedy] = logits[greedy].argmax(dim=-1, keepdim=True)
        values = logprobs.gather(1, tokens)
        if greedy:
            values[greedy] = torch.log_softmax(logits[greedy], dim=-1).gather(1, tokens[greedy])
        both = torch.cat([tokens.float(), values], dim=1).tolist()  # one transfer; ids are exact below 2**24
        return [int(token) for token, _ in both], [value for _, value in both]

    def _truncated(self, scores: torch.Tensor, top_ps: Sequence[float]) -> torch.Tensor:
        """Return the scores (rows, vocabulary) without the tokens that top_k, top_p and min_p rule out."""
        if self.top_k > 0:
            scores = TopKLogitsWarper(self.top_k)(None, scores)
        for top_p in sorted(set(top_ps)):
            if top_p < 1:
                rows = [row for row, own in enumerate(top_ps) if own == top_p]
                truncated = TopPLogitsWarper(top_p)(None, scores[rows])
                scores = truncated if len(rows) == len(scores) else scores.index_put((torch.tensor(rows),), truncated)
        return MinPLogitsWarper(self.min_p)(None, scores) if self.min_p > 0 else scores


def _says(name: str, value: Any) -> bool:
    """Whether a field of a ``GenerationConfig`` is one of ours, or differs from what it is by itself."""
    if name.startswith("_"):  # where the object comes from
        return False
    return value is not None and (name in _KNOWN or value != _DEFAULTS.get(name))


def _inverse_transform(probabilities: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """Return (rows, 1) the token whose share of the distribution (rows, vocabulary) holds the number (rows, 1)."""
    cumulated = probabilities.cumsum(dim=-1)
    choice = torch.searchsorted(cumulated, number * cumulated[:, -1:], right=True)
    # Rounding may put the number on the last edge; the last token with any probability takes it then.
    last = cumulated.argmax(dim=-1, keepdim=True)  # the first to reach the sum: those after it have no share
    return torch.minimum(choice, last)


def uniforms(seed: Sequence[int], key: int, turn: int, steps: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return the numbers of one turn; they depend on nothing else."""
    stream = np.random.SeedSequence((*(number & (1 << 64) - 1 for number in seed), key, turn))
    return np.random.Generator(np.random.Philox(stream)).random(steps, dtype=np.float32)

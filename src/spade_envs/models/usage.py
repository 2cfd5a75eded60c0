"""What was asked of an endpoint, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency for a million tokens."""

    prompt: float = 0.0
    completion: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read ``"0.15,0.60"``: prompt tokens, then completion tokens.

        Raises:
            ValueError: if these are not two numbers of at least 0.
        """
        try:
            prompt, completion = (float(part) for part in text.split(","))
        except ValueError:
            raise ValueError(
                f"prices are two numbers for a million tokens each, such as 0.15,0.60; got {text!r}"
            ) from None
        if not (0 <= prompt < float("inf") and 0 <= completion < float("inf")):
            raise ValueError(f"prices must be finite and at least 0, got {text!r}")
        return cls(prompt, completion)


_MOST_COST = 1e9  # of one answer: more is no price


@dataclass(slots=True)
class Usage:
    """What was asked of an endpoint so far. ``cost`` counts what servers report, else tokens by the given prices."""

    requests: int = 0
    retries: int = 0
    throttled: int = 0  # refusals for load among the retries
    reused: int = 0  # completions that a journal gave instead
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    prices: Prices = Prices()

    def add(self, prompt_tokens: int, completion_tokens: int, reported: Any = None) -> None:
        """Count one answer; ``reported`` is the cost that the server says, if it does."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        if type(reported) in (int, float) and 0 <= reported < _MOST_COST:
            self.cost += reported
        else:
            self.cost += (prompt_tokens * self.prices.prompt + completion_tokens * self.prices.completion) / 1e6

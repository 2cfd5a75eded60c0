"""One training sequence: prompt ids, completion ids and which of those the policy sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from spade_envs.play import Episode

Role = Literal["designer", "hint", "agent", "pad"]


@dataclass(slots=True)
class Row:
    """One sequence of a training batch.

    ``mask`` and ``completion_ids`` have the same length; 1 marks a token the policy sampled, 0 a token that stood in
    its context (an observation, a missing end-of-turn token). ``logprobs`` has that length too, 0.0 where masked,
    or is empty when the backend gives none (``scored`` is False then). ``reward`` is the raw reward, None where there
    is nothing to learn from. ``age`` counts the updates between sampling and training; the ``ratio`` of an old row
    corrects for them, one factor for each completion token (empty: none). ``advantage`` is what the update used, None
    before; ``episode`` is what the row was played in.
    """

    role: Role
    group: str  # rows of one role and group are compared with each other
    prompt_ids: list[int]
    completion_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    reward: float | None = None
    scored: bool = False
    age: int = 0
    ratio: list[float] = field(default_factory=list)
    advantage: float | None = None
    episode: Episode | None = field(default=None, compare=False, repr=False)

    def sampled(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> None:
        """Append tokens of the policy."""
        if logprobs is not None and len(logprobs) != len(ids):
            raise ValueError(f"expected one log-probability for each of {len(ids)} tokens, got {len(logprobs)}")
        self.completion_ids += ids
        self.mask += [1] * len(ids)
        self.scored = logprobs is not None
        self.logprobs += logprobs or []

    def given(self, ids: Sequence[int]) -> None:
        """Append tokens of the environment."""
        self.completion_ids += ids
        self.mask += [0] * len(ids)
        self.logprobs += [0.0] * len(ids) * self.scored

    @property
    def context(self) -> list[int]:
        """All ids so far: what the policy sees when it samples the next turn."""
        return self.prompt_ids + self.completion_ids

    @property
    def tokens(self) -> int:
        """How many tokens of this row the policy sampled."""
        return sum(self.mask)

    @classmethod
    def padding(cls, token: int, *, scored: bool) -> Row:
        """Return a masked row of one token, for a slot that is not used."""
        return cls("pad", "pad", [token], [token], [0], [0.0] * scored, scored=scored)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary that :meth:`from_dict` reads back; the episode is left out."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "episode"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Row:
        """Read what :meth:`to_dict` wrote."""
        return cls(**values)

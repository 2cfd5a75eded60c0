"""The record of one generated environment: what is stored, searched, registered and shared.

A record is immutable; only its play statistics change, and they change by replacement
(:meth:`EnvironmentRecord.with_statistics`). Its id is the SHA-256 of the normalised source, so the same
program is the same record wherever it was written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIN_RETURN = 0.99
"""An episode counts as won when its return reaches this value (returns are clipped to [-1, 1])."""

_CLASS_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


def normalise_source(source: str) -> str:
    """Return ``source`` with Unix line ends, no byte-order mark, no trailing blanks, one final newline."""
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n") + "\n"


def source_id(source: str) -> str:
    """Return the record id of ``source``: 64 hexadecimal digits of SHA-256 over the normalised text."""
    return hashlib.sha256(normalise_source(source).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class PlayStatistics:
    """Sums over episodes, plain (without the hint) and hinted. Returns lie in [-1, 1]."""

    plain_plays: int = 0
    plain_return: float = 0.0
    plain_wins: int = 0
    hinted_plays: int = 0
    hinted_return: float = 0.0
    hinted_wins: int = 0

    def add(self, returns: Sequence[float], *, hinted: bool) -> PlayStatistics:
        """Return new statistics that include episodes with these ``returns``."""
        wins = sum(value >= WIN_RETURN for value in returns)
        if hinted:
            return dataclasses.replace(
                self,
                hinted_plays=self.hinted_plays + len(returns),
                hinted_return=self.hinted_return + sum(returns),
                hinted_wins=self.hinted_wins + wins,
            )
        return dataclasses.replace(
            self,
            plain_plays=self.plain_plays + len(returns),
            plain_return=self.plain_return + sum(returns),
            plain_wins=self.plain_wins + wins,
        )

    @property
    def win_rate(self) -> float | None:
        """Share of plain episodes won, or None before the first play."""
        return self.plain_wins / self.plain_plays if self.plain_plays else None

    @property
    def mean_plain(self) -> float | None:
        """Mean return of plain episodes."""
        return self.plain_return / self.plain_plays if self.plain_plays else None

    @property
    def mean_hinted(self) -> float | None:
        """Mean return of hinted episodes."""
        return self.hinted_return / self.hinted_plays if self.hinted_plays else None

    @property
    def regret(self) -> float | None:
        """Mean return with the hint minus mean return without (the designer's signal), if both were played."""
        if self.mean_plain is None or self.mean_hinted is None:
            return None
        return self.mean_hinted - self.mean_plain


@dataclass(frozen=True, slots=True)
class EnvironmentRecord:
    """One generated environment.

    Build it with :meth:`create`, which normalises the source and computes the id.
    """

    id: str
    source: str
    name: str  # the class name in the source, ends in "Env" where the program follows the contract
    kind: str = "game"  # "game" or "tool_use"
    skill: str = ""
    hint: str = ""
    document_id: str = ""
    document: str = ""  # an excerpt of the grounding document, for people
    parents: tuple[str, ...] = ()  # ids of the exemplars that stood in the designer's prompt
    generator: str = ""  # model that wrote it, "human", "import:<pool>"
    max_turns: int = 0  # 0: the program's own default
    allow: tuple[str, ...] = ()  # opt-in modules, e.g. ("numpy",)
    licence: str = ""
    proven: bool = False  # its solution() earned the maximal return in the validator
    report: Mapping[str, Any] = field(default_factory=dict)  # Report.to_dict() of the validator
    meta: Mapping[str, Any] = field(default_factory=dict)  # free, JSON-safe
    created_at: float = 0.0  # Unix seconds; not part of any identity
    statistics: PlayStatistics = PlayStatistics()

    @classmethod
    def create(cls, source: str, name: str, **fields: Any) -> EnvironmentRecord:
        """Make a record from a program's source and class name.

        Raises:
            ValueError: if ``name`` is not a plain ASCII class name of at most 64 characters.
        """
        if not _CLASS_NAME.match(name):
            raise ValueError(
                f"environment class name must be 1-64 ASCII letters, digits or '_', starting with a letter; "
                f"got {name[:80]!r}. Rename the class in the source."
            )
        text = normalise_source(source)
        return cls(id=source_id(text), source=text, name=name, **fields)

    @property
    def env_id(self) -> str:
        """The Gymnasium id, ``spade/<ClassNameWithoutEnv>-<first 8 of sha256>-v0``."""
        stem = self.name.removesuffix("Env") or "Env"
        return f"spade/{stem}-{self.id[:8]}-v0"

    def with_statistics(self, statistics: PlayStatistics) -> EnvironmentRecord:
        """Return the same record with other play statistics."""
        return dataclasses.replace(self, statistics=statistics)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary that :meth:`from_dict` reads back."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["parents"], values["allow"] = list(self.parents), list(self.allow)
        values["report"], values["meta"] = dict(self.report), dict(self.meta)
        values["statistics"] = dataclasses.asdict(self.statistics)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EnvironmentRecord:
        """Read what :meth:`to_dict` wrote; unknown keys are ignored, the id is recomputed from the source."""
        known = {f.name for f in dataclasses.fields(cls)} - {"id"}
        fields = {key: value for key, value in values.items() if key in known}
        fields["parents"] = tuple(fields.get("parents", ()))
        fields["allow"] = tuple(fields.get("allow", ()))
        fields["statistics"] = PlayStatistics(**fields.get("statistics", {}))
        return cls.create(fields.pop("source"), fields.pop("name"), **fields)

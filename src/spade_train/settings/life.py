"""What a run keeps, watches and evaluates."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import ConfigError, one_of, setting


@dataclass
class LifeSettings:
    """Sandbox, records, evaluation."""

    minimum_isolation: str = setting("full", "refuse to run programs with less: full, partial or static")
    threads: int = setting(0, "CPU threads of torch; 0 leaves them as they are, 1 is best for very small models")
    sandbox_workers: int = setting(64, "most live worker processes of one rank")
    transcripts: bool = setting(True, "write every program and episode to <output_dir>/transcripts.jsonl")
    heldout: str | None = setting(None, "JSONL of held-out programs; 'builtin:nano' for the embedded set")
    heldout_every: int = setting(0, "evaluate on them every so many cycles; 0: never")
    heldout_seeds: int = setting(2, "episodes of each held-out program")

    def check_life(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        one_of(self, {"minimum_isolation": ("full", "partial", "static")})
        if self.heldout_every and not self.heldout:
            raise ConfigError("heldout_every needs heldout: a JSONL file of programs, or builtin:nano")

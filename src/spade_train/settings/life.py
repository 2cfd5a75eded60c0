"""What a run keeps, watches, evaluates and publishes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from spade_train.settings.base import ConfigError, at_least, one_of, setting

TRANSCRIPTS = ("jsonl", "parquet", "both", "off")
STOPS = ("validity", "diversity", "regret")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)


@dataclass
class LifeSettings:
    """Sandbox, records, evaluation, early stop, the Hub."""

    minimum_isolation: str = setting("full", "refuse to run programs with less: full, partial or static")
    threads: int = setting(0, "CPU threads of torch; 0 leaves them as they are, 1 is best for very small models")
    sandbox_workers: int = setting(0, "most live worker processes of one rank; 0: by open programs and cores")
    transcripts: str = setting("both", "what was written and played: jsonl (to read), parquet (all of it), both, off")
    transcript_ids: bool = setting(False, "keep token ids in Parquet transcripts")

    heldout: str | None = setting(None, "JSONL of held-out programs; 'builtin:nano' for the embedded set")
    heldout_every: int = setting(0, "evaluate on them every so many cycles; 0: never")
    heldout_seeds: int = setting(2, "episodes of each held-out program")
    evaluate_suites: str = setting("", "suites of spade eval to evaluate on during training, comma-separated")
    evaluate_every: int = setting(0, "evaluate on them every so many cycles; 0: never")
    evaluate_limit: int = setting(64, "questions of each suite; 0: all")
    evaluate_seed: int = setting(0, "of sampled answers; the run's own random state is not touched")
    contamination: str = setting(
        "auto", "refuse what holds questions of: auto (evaluate_suites), off, suites, JSONL files"
    )
    best_metric: str | None = setting(None, "keep the adapter with the best value in best/, e.g. heldout/success")

    stop_on: str = setting("", "stop early when one of these collapses: validity, diversity, regret (comma-separated)")
    stop_validity: float = setting(0.1, "share of valid programs that counts as collapsed below")
    stop_diversity: float = setting(1.3, "Vendi score of a cycle's programs that counts as collapsed below")
    stop_regret: float = setting(0.01, "mean regret that counts as collapsed below")
    stop_patience: int = setting(20, "cycles in a row that must be collapsed")

    hub_memory: bool = setting(False, "with push_to_hub: push the environments too, as <hub_model_id>-environments")
    hub_push: bool = field(default=False, init=False, repr=False)  # push_to_hub as it was asked for

    def check_life(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        if isinstance(self.transcripts, bool):  # YAML reads off and on as booleans
            self.transcripts = "both" if self.transcripts else "off"
        one_of(self, {"minimum_isolation": ("full", "partial", "static"), "transcripts": TRANSCRIPTS})
        at_least(self, 1, ["stop_patience"])
        at_least(self, 0, ["heldout_every", "evaluate_every", "evaluate_limit", "sandbox_workers"])
        if self.heldout_every and not self.heldout:
            raise ConfigError("heldout_every needs heldout: a JSONL file of programs, or builtin:nano")
        if self.evaluate_every and not self.suites:
            raise ConfigError("evaluate_every needs evaluate_suites: names of suites, as spade eval takes them")
        if self.best_metric and not (self.heldout_every or self.evaluate_every):
            raise ConfigError("best_metric needs an evaluation: set heldout_every or evaluate_every")
        for name in self.stops:
            if name not in STOPS:
                raise ConfigError(f"stop_on takes {', '.join(STOPS)}, got {name!r}")
        self._check_hub()

    @property
    def suites(self) -> list[str]:
        """The names in ``evaluate_suites``."""
        return _names(self.evaluate_suites)

    @property
    def stops(self) -> list[str]:
        """The names in ``stop_on``."""
        return _names(self.stop_on)

    def _check_hub(self) -> None:
        """Take the pushing over from the trainer, which would upload the memory and the transcripts as well."""
        arguments: Any = self
        if arguments.hub_token is not None:
            raise ConfigError("hub_token would be written into every checkpoint: use hf auth login, or HF_TOKEN")
        if arguments.push_to_hub:
            self.hub_push, arguments.push_to_hub = True, False
        if not self.hub_push:
            if self.hub_memory:
                raise ConfigError("hub_memory needs push_to_hub")
            return
        if str(getattr(arguments.save_strategy, "value", arguments.save_strategy)) == "no":
            raise ConfigError("push_to_hub pushes the adapter of a checkpoint, and save_strategy: no writes none")
        if not _REPOSITORY.match(str(arguments.hub_model_id or "")):
            raise ConfigError(f"push_to_hub needs hub_model_id as OWNER/NAME, got {arguments.hub_model_id!r}")


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]

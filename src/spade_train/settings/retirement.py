"""When environments are retired from replay."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.retirement import RetirementRules
from spade_train.settings.base import ConfigError, at_least, setting

_RULES = RetirementRules()


@dataclass
class RetirementSettings:
    """Bounds of :func:`spade_train.retirement.retirement`."""

    retire_plays: int = setting(_RULES.plays, "fewest plain plays before an environment is retired")
    retire_mastered: float = setting(_RULES.mastered, "retire above this win rate")
    retire_hopeless: float = setting(_RULES.hopeless, "retire at or below this win rate, hinted plays included")
    stagnant_plays: int = setting(_RULES.stagnant_plays, "plain plays after which regret must have fallen; 0: never")
    stagnant_fall: float = setting(_RULES.stagnant_fall, "fall of the regret from the first to the last half of them")

    def check_retirement(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        at_least(self, 1, ["retire_plays"])
        at_least(self, 0, ["stagnant_plays"])
        if not 0.0 <= self.retire_hopeless < self.retire_mastered <= 1.0:
            raise ConfigError(
                f"retire_hopeless and retire_mastered must satisfy 0 <= hopeless < mastered <= 1, got "
                f"{self.retire_hopeless} and {self.retire_mastered}"
            )

    @property
    def retirement_rules(self) -> RetirementRules:
        """The bounds as one value."""
        return RetirementRules(
            self.retire_plays, self.retire_mastered, self.retire_hopeless, self.stagnant_plays, self.stagnant_fall
        )

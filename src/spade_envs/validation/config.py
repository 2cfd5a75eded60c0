"""How strictly programs are validated."""

from __future__ import annotations

from dataclasses import dataclass

from spade_envs.returns import ReturnMode
from spade_envs.validation.finding import Severity


@dataclass(frozen=True, slots=True)
class ValidationConfig:
    """Seeds, bounds and thresholds of the probes. Returns lie in [-1, 1], sizes are in characters."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    """Seeds that ``solution()`` must win; the first :attr:`play_seeds` of them are played by the other policies."""
    hidden_seeds: int = 2
    """Further seeds, drawn from the hash of the source and used first: no program can know by which it is judged."""
    play_seeds: int = 4
    contentless_seeds: int = 2
    """Seeds played by policies that say nothing of content, and by guesses that earn nothing there."""
    confirm_seeds: int = 24
    """Further seeds for a know-nothing policy that looks as if it wins, so that luck refuses nobody."""
    max_steps: int = 64
    """Steps within which an episode must end; checked on the first seed and on the plays of ``solution()``."""
    play_steps: int = 25
    """Steps of know-nothing plays on the other seeds; only if the first seed's play earns something
    are they played on."""
    return_mode: ReturnMode = "final"
    discount: float = 1.0
    require_proof: bool = False
    """Refuse programs without a ``solution()``."""
    hint_answer: Severity = Severity.REFUSE
    """What a hint that gives the answer away means."""
    negative_reward: Severity = Severity.REFUSE
    constant_seeds: Severity = Severity.REFUSE
    """What it means when every seed gives the very same puzzle."""
    contentless_return: float = 0.3
    """Mean return at which a policy that says nothing of content (empty text, noise, echo) refuses the program."""
    suspect_return: float = 0.4
    """Mean return of a guessing policy from which it is played on the confirmation seeds."""
    guess_return: float = 0.8
    """Mean return over the confirmation seeds at which a guessing policy refuses the program."""
    warn_return: float = 0.25
    """Mean return of any know-nothing policy from which a person should look."""
    leak_share: float = 1 / 3
    """Share of seeds whose first observation may not give the answer away."""
    long_observation: int = 20_000
    long_episode: int = 100_000
    """Characters of one observation, and of all observations of an episode, from which a warning is given."""
    tool_operations: int = 600
    """Sandbox operations for one search over tool calls; programs whose ``solution()`` wins need none. 0: no search."""
    tool_seeds: int = 2
    """Seeds on which tool environments are looked into."""
    bimodal: Severity = Severity.WARN
    """What it means when know-nothing policies win some seeds and nothing wins others."""
    bimodal_share: float = 0.2
    """Share of such seeds, of either kind, from which a program is called bimodal."""
    seconds: float = 30.0
    """Wall-clock budget of all probes of one program; a program that needs more is refused as too slow."""
    cross_process: bool = True
    """Replay in a second process with another memory layout too, if the program can see addresses."""

    @property
    def further_seeds(self) -> tuple[int, ...]:
        """The :attr:`confirm_seeds` further seeds."""
        return tuple(self.seeds[0] + 1 + 7 * index for index in range(self.confirm_seeds))

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: if there are no seeds, seeds repeat, or a bound is not positive.
        """
        if len(self.seeds) < 2 or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds must be at least two different numbers; got {self.seeds!r}")
        if not 0 <= self.hidden_seeds <= 8:
            raise ValueError(f"hidden_seeds must lie between 0 and 8; got {self.hidden_seeds!r}")
        for name in ("play_seeds", "contentless_seeds", "confirm_seeds", "max_steps", "play_steps", "seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive; got {getattr(self, name)!r}")

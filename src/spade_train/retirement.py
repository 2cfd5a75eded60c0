"""Which environments are not worth another replay, and why. Pure functions of how an environment was played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from spade_envs.record import PlayStatistics

MASTERED, HOPELESS, STAGNANT = "mastered", "hopeless", "stagnant"


@dataclass(frozen=True, slots=True)
class RetirementRules:
    """When an environment is retired from replay."""

    plays: int = 16  # fewest plain plays before anything is said
    mastered: float = 0.9  # a win rate above it
    hopeless: float = 0.1  # a win rate of at most that, hinted too
    stagnant_plays: int = 48  # plain plays after which regret must have fallen; 0: never asked
    stagnant_fall: float = 0.05


def retirement(statistics: PlayStatistics, plain: Sequence[float], rules: RetirementRules) -> str:
    """Return why an environment is retired: a word and its figures; "" if it is worth another replay.

    - *mastered*: its win rate is above ``rules.mastered``.
    - *hopeless*: its win rate is at most ``rules.hopeless``, and that of the hinted plays too, if there were as many
      as a verdict needs or at least one rollout's.
    - *stagnant*: its regret does not fall any more: over ``rules.stagnant_plays`` plain plays or more, the regret of
      the later half is not lower than that of the earlier half by ``rules.stagnant_fall``. Both halves are measured
      against the same hinted plays, so the fall is the rise of the mean plain return.

    Args:
        statistics: sums over all plays.
        plain: returns of the plain plays in the order in which they were made.
        rules: the bounds.
    """
    rate = statistics.win_rate
    if rate is None or statistics.plain_plays < rules.plays:
        return ""
    if rate > rules.mastered:
        return f"{MASTERED}: win rate {rate:.2f} in {statistics.plain_plays} plain plays"
    if rate <= rules.hopeless and statistics.hinted_plays:
        hinted = statistics.hinted_wins / statistics.hinted_plays
        if hinted <= rules.hopeless:
            return (
                f"{HOPELESS}: win rate {rate:.2f} in {statistics.plain_plays} plain plays, {hinted:.2f} with the hint"
            )
    if rules.stagnant_plays and len(plain) >= rules.stagnant_plays:
        middle = len(plain) // 2
        fall = fmean(plain[middle:]) - fmean(plain[:middle])
        if fall < rules.stagnant_fall:
            return (
                f"{STAGNANT}: regret fell by {fall:.2f} from the first to the last {middle} of {len(plain)} plain plays"
            )
    return ""

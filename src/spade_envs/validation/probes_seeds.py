"""How much seeds differ: the solvable share, what know-nothing policies win, environments of two kinds of seeds."""

from __future__ import annotations

import statistics
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding
from spade_envs.validation.rollout import CollectionStopped, Policy, Rollout


def collect_seeds(evidence: Evidence) -> None:
    """Play the know-nothing policy that earned most, but not always, on every seed.

    Raises:
        SandboxError: if the machinery fails.
    """
    if not evidence.complete:
        return
    best, mean = None, 0.0
    for player, rollouts in evidence.known_nothing.values():
        returns = [rollout.return_(evidence.config) for rollout in rollouts]
        if returns and max(returns) >= WIN_RETURN > min(returns) and statistics.fmean(returns) > mean:
            best, mean = (player, rollouts), statistics.fmean(returns)
    if best is None:
        return
    player, rollouts = best
    played = {rollout.seed for rollout in rollouts}
    more: list[tuple[Rollout, Policy]] = [
        (Rollout(player.name, seed), player.policy) for seed in evidence.config.seeds if seed not in played
    ]
    try:
        evidence.runner.play(more, evidence.config.play_steps)
    except CollectionStopped:
        evidence.complete = False
    rollouts += [rollout for rollout, _ in more]


def seed_figures(evidence: Evidence) -> dict[str, Any]:
    """Figures by seed for a report.

    ``solution``: seed -> best return of ``solution()``; ``solvable_share``: share of these seeds that it won, None
    without ``solution()``; ``know_nothing``: seed -> best mean of a know-nothing policy's returns there; ``deviation``:
    the standard deviation of those; ``trivial`` and ``impossible``: seeds of these kinds.
    """
    config = evidence.config
    solution = {
        seed: max(play.return_(config) for play in plays) for seed, plays in evidence.solution_plays.items() if plays
    }
    best: dict[int, float] = {}
    for _, rollouts in evidence.known_nothing.values():
        by_seed: dict[int, list[float]] = {}
        for rollout in rollouts:
            if rollout.seed in config.seeds:
                by_seed.setdefault(rollout.seed, []).append(rollout.return_(config))
        for seed, returns in by_seed.items():
            best[seed] = max(best.get(seed, 0.0), statistics.fmean(returns))
    trivial = [seed for seed, value in best.items() if value >= WIN_RETURN]
    works = any(value >= WIN_RETURN for value in solution.values())
    # A solution() that never wins is broken itself: it says nothing of the seeds.
    asked = solution if works else best
    impossible = [seed for seed, value in asked.items() if value < WIN_RETURN and best.get(seed, 0.0) < WIN_RETURN]
    won = sum(value >= WIN_RETURN for value in solution.values())
    return {
        "solvable_share": round(won / len(solution), 4) if solution else None,
        "solution": {str(seed): round(value, 4) for seed, value in solution.items()},
        "know_nothing": {str(seed): round(value, 4) for seed, value in best.items()},
        "deviation": round(statistics.pstdev(best.values()), 4) if best else 0.0,
        "trivial": trivial,
        "impossible": impossible,
    }


def bimodal(evidence: Evidence) -> list[Finding]:
    """Some seeds ask for nothing, and on others nothing wins: a mean return of one half that says nothing.

    Without a ``solution()`` that works nobody knows that a seed is impossible: such a program is called bimodal only if
    policies without content win some seeds, for which a lucky guess is no excuse.
    """
    config = evidence.config
    figures = seed_figures(evidence)
    played = [seed for seed in config.seeds if str(seed) in figures["know_nothing"]]
    trivial = set(figures["trivial"])
    works = bool(figures["solvable_share"])
    if not works:
        free = {
            rollout.seed
            for player, rollouts in evidence.known_nothing.values()
            for rollout in rollouts
            if player.contentless and rollout.return_(config) >= WIN_RETURN
        }
        trivial &= free
    total = max(1, len(evidence.solution_plays) if works else len(played))
    easy = [seed for seed in trivial if seed in config.seeds]
    hard = [seed for seed in figures["impossible"] if seed in config.seeds]
    if not easy or not hard or min(len(easy) / max(1, len(played)), len(hard) / total) < config.bimodal_share:
        return []
    won = "solution() wins" if works else "any policy wins"
    reason = (
        f"two kinds of seeds: {len(easy)} of {len(played)} are won by a player that knows nothing, and on "
        f"{len(hard)} of {total} not even {won}. Draw puzzles of one difficulty: check in reset() that the goal is "
        "neither reached already nor out of reach, and draw again."
    )
    proof = {"trivial": sorted(easy)[:20], "impossible": sorted(hard)[:20], "deviation": figures["deviation"]}
    return [Finding("bimodal", config.bimodal, reason, proof)]

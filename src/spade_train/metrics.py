"""Numbers of one cycle. The glossary is in docs/training.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from spade_envs.play import Episode
from spade_train.cycle import Cycle, Played, Written
from spade_train.rewards import LEARNABLE, regret, win_rate


def cycle_metrics(cycle: Cycle) -> dict[str, float]:
    """Return the cycle's metrics by name; those without any data are left out."""
    metrics = {f"seconds/{stage}": value for stage, value in cycle.seconds.items()}
    metrics["seconds/rollout"] = sum(cycle.seconds.values())
    metrics |= _design_metrics(cycle.written)
    metrics |= _environment_metrics([one for one in cycle.played if one.fresh], "environment")
    metrics |= _environment_metrics([one for one in cycle.played if not one.fresh], "replay")
    plain = [episode for one in cycle.played for episode in one.plain]
    hinted = [episode for one in cycle.played for episode in one.hinted]
    metrics |= _episode_metrics(plain)
    metrics["tokens/designer"] = sum(one.row.tokens for one in cycle.written)
    metrics["tokens/agent"] = sum(episode.tokens for episode in plain)
    metrics["tokens/hinted"] = sum(episode.tokens for episode in hinted)
    return {name: float(value) for name, value in metrics.items()}


def _design_metrics(written: Sequence[Written]) -> dict[str, float]:
    if not written:
        return {}
    status = Counter(str(one.attempt.status) for one in written)
    copies = Counter(one.outcome.copies for one in written if one.played is not None)
    repeated = sum(count - count // number for number, count in copies.items())
    causes = Counter(one.attempt.cause or str(one.attempt.status) for one in written)
    refused = {f"refused/{cause}": float(n) for cause, n in causes.items() if cause not in ("admitted", "duplicate")}
    return refused | {
        "design/valid": (status["admitted"] + status["duplicate"]) / len(written),
        "design/duplicate": (status["duplicate"] + repeated) / len(written),
        "design/no_code": status["no_code"] / len(written),
        "design/timeout": fmean(one.outcome.timed_out for one in written),
        "design/reward": fmean(one.row.reward or 0.0 for one in written),
        "design/tokens": fmean(one.row.tokens for one in written),
    }


def _environment_metrics(played: Sequence[Played], prefix: str) -> dict[str, float]:
    plain = {id(one): returns for one in played if (returns := one.returns(hinted=False))}
    if not plain:
        return {}
    rates = [win_rate(returns) for returns in plain.values()]
    metrics = {
        f"{prefix}/count": float(len(plain)),
        f"{prefix}/win_rate": fmean(rates),
        f"{prefix}/plain_return": fmean(fmean(returns) for returns in plain.values()),
        f"{prefix}/learnable": fmean(LEARNABLE[0] <= rate <= LEARNABLE[1] for rate in rates),
        f"{prefix}/failed": fmean(bool(one.errors) for one in played),
    }
    pairs = [(one.returns(hinted=True), plain[id(one)]) for one in played if id(one) in plain]
    pairs = [(hinted, own) for hinted, own in pairs if hinted and len(hinted) == len(own)]
    if pairs:
        metrics[f"{prefix}/hinted_return"] = fmean(fmean(hinted) for hinted, _ in pairs)
        metrics[f"{prefix}/regret"] = fmean(regret(hinted, own) for hinted, own in pairs)
    return metrics


def _episode_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    if not episodes:
        return {}
    stops = Counter(str(episode.stop) for episode in episodes)
    metrics = {f"stop/{reason}": float(count) for reason, count in stops.items()}
    metrics["episode/return"] = fmean(episode.return_ for episode in episodes)
    metrics["episode/turns"] = fmean(episode.turns for episode in episodes)
    metrics["episode/tokens"] = fmean(episode.tokens for episode in episodes)
    return metrics

"""Numbers of one cycle. The glossary is in docs/training.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, pstdev

from spade_envs.play import Episode, StopReason
from spade_envs.validation.occurrence import bare, occurrence
from spade_train.cycle import Cycle, Played, Written
from spade_train.rewards import LEARNABLE, regret, win_rate

_BINS = 10
"""Of the histogram of regrets, over [-1, 1]; the same as ``spade stats``."""
_SURE, _NEVER = 0.9, 0.1
"""Mean returns from which an environment counts as always won, or never."""
_SANDBOX_FAULTS = ("died", "timeout", "quarantined")
"""As errors of episodes begin."""


def cycle_metrics(cycle: Cycle, *, design_tokens: int = 0) -> dict[str, float]:
    """Return the cycle's metrics by name; those without any data are left out.

    Args:
        cycle: what happened.
        design_tokens: longest program, to count those that were cut; 0: not counted.
    """
    metrics: dict[str, float] = {f"seconds/{stage}": value for stage, value in cycle.seconds.items()}
    metrics["seconds/rollout"] = sum(cycle.seconds.values())
    metrics |= _design_metrics(cycle.written, design_tokens) | _pay_metrics(cycle.paid)
    fresh = [one for one in cycle.played if one.fresh]
    metrics |= _environment_metrics(fresh, "environment")
    metrics |= _environment_metrics([one for one in cycle.played if not one.fresh], "replay")
    metrics |= _hint_metrics(fresh)
    plain = [episode for one in cycle.played for episode in one.plain]
    hinted = [episode for one in cycle.played for episode in one.hinted]
    metrics |= _episode_metrics(plain) | _sandbox_metrics(plain + hinted)
    metrics["tokens/designer"] = sum(one.row.tokens for one in cycle.written)
    if cycle.hints:
        metrics["tokens/hint"] = sum(one.row.tokens for one in cycle.hints)
    metrics["tokens/agent"] = sum(episode.tokens for episode in plain)
    metrics["tokens/hinted"] = sum(episode.tokens for episode in hinted)
    return {name: float(value) for name, value in metrics.items()}


def _design_metrics(written: Sequence[Written], limit: int) -> dict[str, float]:
    if not written:
        return {}
    status = Counter(str(one.attempt.status) for one in written)
    played = Counter(one.environment for one in written if one.environment)
    repeated = sum(count - 1 for count in played.values())
    causes = Counter(one.attempt.cause or str(one.attempt.status) for one in written)
    refused = {f"refused/{cause}": float(n) for cause, n in causes.items() if cause not in ("admitted", "duplicate")}
    lengths = [one.row.tokens for one in written]
    cut = {"design/cut": fmean(length >= limit for length in lengths)} if limit else {}
    return (
        refused
        | cut
        | {
            "design/valid": (status["admitted"] + status["duplicate"]) / len(written),
            "design/admitted": status["admitted"] / len(written),
            "design/duplicate": (status["duplicate"] + repeated) / len(written),
            "design/no_code": status["no_code"] / len(written),
            "design/tokens": fmean(lengths),
            "design/tokens_max": max(lengths),
        }
    )


def _pay_metrics(paid: Sequence[Written]) -> dict[str, float]:
    """Say what the replies whose windows have ended earned."""
    if not paid:
        return {}
    rewards = [one.row.reward or 0.0 for one in paid]
    return {
        "design/timeout": fmean(one.outcome.timed_out for one in paid),
        "design/reward": fmean(rewards),
        "design/reward_std": pstdev(rewards),
    }


def _environment_metrics(played: Sequence[Played], prefix: str) -> dict[str, float]:
    plain = {id(one): returns for one in played if (returns := one.returns(hinted=False))}
    if not plain:
        return {}
    rates = [win_rate(returns) for returns in plain.values()]
    low, high = LEARNABLE
    metrics = {
        f"{prefix}/count": float(len(plain)),
        f"{prefix}/win_rate": fmean(rates),
        f"{prefix}/plain_return": fmean(fmean(returns) for returns in plain.values()),
        f"{prefix}/learnable": fmean(low <= rate <= high for rate in rates),
        f"{prefix}/mastered": fmean(rate > high for rate in rates),
        f"{prefix}/hopeless": fmean(rate < low for rate in rates),
        f"{prefix}/failed": fmean(bool(one.errors) for one in played),
    }
    both = [(one.returns(hinted=True), plain[id(one)]) for one in played if id(one) in plain]
    pairs = [(hinted, own) for hinted, own in both if hinted and len(hinted) == len(own)]
    if pairs:
        regrets = [regret(hinted, own) for hinted, own in pairs]
        bins = Counter(min(_BINS - 1, max(0, int((value + 1) * _BINS / 2))) for value in regrets)
        metrics[f"{prefix}/hinted_return"] = fmean(fmean(hinted) for hinted, _ in pairs)
        metrics[f"{prefix}/regret"] = fmean(regrets)
        metrics[f"{prefix}/password"] = fmean(fmean(hinted) >= _SURE and fmean(own) <= _NEVER for hinted, own in pairs)
        metrics |= {f"{prefix}/regret_bin_{index}": float(bins[index]) for index in range(_BINS)}
    return metrics


def _hint_metrics(fresh: Sequence[Played]) -> dict[str, float]:
    """Length and repetition of the hints that were played, and how many hold the action that won."""
    first = [(one.hinted[0].task.hint or "", one) for one in fresh if one.hinted]
    refused = [bool(one.record.meta.get("hint_refused")) for one in fresh]
    if not first:
        return {"hint/refused": fmean(refused)} if any(refused) else {}
    texts = [hint for hint, _ in first]
    return {
        "hint/characters": fmean(len(hint) for hint in texts),
        "hint/repeated": 1.0 - len(set(texts)) / len(texts),
        "hint/answer": fmean(any(_tells(episode) for episode in one.hinted) for _, one in first),
        "hint/refused": fmean(refused),
    }


def _tells(episode: Episode) -> bool:
    """Whether the hint of a won episode calls the last action the answer, or has nothing else of its kind."""
    if not episode.steps or episode.return_ < _SURE or not episode.task.hint:
        return False
    return occurrence(bare(episode.steps[-1].action), episode.task.hint) in ("lone", "labelled", "equal")


def _episode_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    if not episodes:
        return {}
    stops = Counter(str(episode.stop) for episode in episodes)
    returns = [episode.return_ for episode in episodes]
    return {
        **{f"stop/{reason}": float(count) for reason, count in stops.items()},
        "episode/return": fmean(returns),
        "episode/return_std": pstdev(returns),
        "episode/turns": fmean(episode.turns for episode in episodes),
        "episode/tokens": fmean(episode.tokens for episode in episodes),
        "episode/tokens_max": max(episode.tokens for episode in episodes),
    }


def _sandbox_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Shares of all episodes that ended with their program's worker."""
    if not episodes:
        return {}
    kinds = Counter(episode.error.partition(":")[0] for episode in episodes if episode.stop is StopReason.PROGRAM_ERROR)
    return {f"sandbox/{fault}": kinds[fault] / len(episodes) for fault in _SANDBOX_FAULTS}

"""Probes of what is paid: range, free wins, malformed actions, and the executable proof."""

from __future__ import annotations

import statistics
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import ProgramError, ProgramRaised
from spade_envs.validation.evidence import Evidence, mean_return
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.policies import GENERAL, HUGE, KnowNothing
from spade_envs.validation.replay import shorten
from spade_envs.validation.rollout import Rollout

PAID = 0.5
"""A reward that counts as being paid for a single action."""


def reward_range(evidence: Evidence) -> list[Finding]:
    """Rewards lie in [-1, 1] and are not negative; returns are in range for the return mode."""
    config = evidence.config
    findings: list[Finding] = []
    paid = [(reward, rollout) for rollout in evidence.rollouts for reward in rollout.rewards]
    paid += [(outcome.value.reward, None) for outcome in _outcomes(evidence)]  # type: ignore[misc]
    if not paid:
        return []
    high, low = max(paid, key=lambda pair: pair[0]), min(paid, key=lambda pair: pair[0])
    for reward, rollout in (high, low):
        if abs(reward) > 1:
            reason = f"a reward of {reward:g} is outside [-1, 1]. Pay 1.0 for full success, less for partial success, else 0.0."
            findings.append(Finding("reward", Severity.REFUSE, reason, {"reward": reward, **_play(rollout)}))
    if -1 <= low[0] < 0:
        reason = (
            f"a reward of {low[0]:g} is negative. Rewards start at 0.0: pay 0.0 for mistakes, and less than 1.0 at the end "
            "for a poor result."
        )
        findings.append(Finding("reward", config.negative_reward, reason, {"reward": low[0], **_play(low[1])}))
    if config.return_mode == "sum":
        totals = [(sum(rollout.rewards), rollout) for rollout in evidence.rollouts if rollout.rewards]
        total, rollout = max(totals, key=lambda pair: pair[0], default=(0.0, None))
        if total > 1 + 1e-6:
            reason = f"the rewards of one episode sum to {total:g}. Their sum may not exceed 1.0."
            findings.append(Finding("reward", Severity.REFUSE, reason, {"sum": total, **_play(rollout)}))
    return findings


def _outcomes(evidence: Evidence) -> list[Any]:
    return [entry.outcome for entry in evidence.malformed if entry.outcome.error is None]


def malformed(evidence: Evidence) -> list[Finding]:
    """Malformed and huge actions do not raise, do not pay, and do not blow up the observation."""
    findings: list[Finding] = []
    ordinary = {_cause(rollout.error) for rollout in evidence.rollouts if rollout.policy not in GENERAL}
    failures = [(entry.action, entry.outcome.error) for entry in evidence.malformed]
    failures += [
        (rollout.actions[-1], rollout.error)
        for rollout in evidence.rollouts
        if rollout.policy in GENERAL and rollout.actions
    ]
    raised = [(action, error) for action, error in failures if error is not None and _cause(error) not in ordinary]
    raised.sort(key=lambda failure: failure[0] in HUGE)
    if raised:
        action, error = raised[0]
        # A player's turn holds some thousand tokens: what only megabytes break costs that player its episode, no more.
        severity = Severity.WARN if action in HUGE else Severity.REFUSE
        reason = (
            f"step({shorten(action, 60)!r}) failed: {error}. step() must accept any text: parse with a regular expression "
            "or inside try/except (ValueError, OverflowError, KeyError, IndexError), and answer an unusable action with an "
            "observation and reward 0.0."
        )
        proof = {
            "seed": evidence.malformed[0].seed,
            "actions": [shorten(action) for action, _ in raised][:8],
            "message": shorten(str(error), 300),
        }
        findings.append(Finding("malformed", severity, reason, proof))
    paying = [
        entry
        for entry in evidence.malformed
        if entry.outcome.error is None and entry.outcome.value.reward >= PAID and entry.outcome.value.terminated
    ]
    if len(paying) >= 2 or any(entry.action in HUGE for entry in paying):
        entry = paying[0]
        reason = (
            f"the malformed action {shorten(entry.action, 60)!r} was paid {entry.outcome.value.reward:g}. Compare the parsed "
            "answer with the expected one exactly; beware of substring tests, NaN and empty text."
        )
        proof = {
            "seed": entry.seed,
            "actions": [shorten(e.action) for e in paying][:8],
            "reward": entry.outcome.value.reward,
        }
        findings.append(Finding("malformed", Severity.REFUSE, reason, proof))
    sizes = [
        len(e.outcome.value.observation) for e in evidence.malformed if e.outcome.error is None and e.action in HUGE
    ]
    if sizes and max(sizes) > evidence.config.long_observation:
        reason = "a very long action comes back in the observation. Show at most the first 100 characters of it: action[:100]."
        size = max(sizes, default=0)
        findings.append(Finding("malformed", Severity.WARN, reason, {"seed": evidence.malformed[0].seed, "size": size}))
    return findings


def _cause(error: ProgramError | None) -> str:
    return error.exception if isinstance(error, ProgramRaised) else "" if error is None else error.kind


def know_nothing(evidence: Evidence) -> list[Finding]:
    """No policy that knows nothing of the task may win."""
    worst: dict[Severity, list[tuple[float, KnowNothing, list[Rollout]]]] = {Severity.REFUSE: [], Severity.WARN: []}
    for player, rollouts in evidence.known_nothing.values():
        severity, mean = _judge(evidence, player, rollouts)
        if severity in worst:
            worst[severity].append((mean, player, rollouts))
    for severity in (Severity.REFUSE, Severity.WARN):
        if worst[severity]:
            mean, player, rollouts = min(
                worst[severity], key=lambda item: (_telling(item[1].name), -item[0], item[1].name)
            )
            best = max(rollouts, key=lambda rollout: rollout.return_(evidence.config))
            others = sorted(item[1].name for item in worst[severity] if item[1] is not player)
            proof = {**_play(best), "mean_return": round(mean, 3), "episodes": len(rollouts), "also": others[:8]}
            return [Finding("know_nothing", severity, _free_win(player, mean, severity, len(rollouts)), proof)]
    return []


_TELLING = ("empty", "repeat", "done", "tool_sweep", "common", "constant", "told", "option", "echo", "example")


def _telling(name: str) -> int:
    """Rank of a policy by how much its winning says about the fault."""
    return next((rank for rank, stem in enumerate(_TELLING) if name.startswith(stem)), len(_TELLING))


def _judge(evidence: Evidence, player: KnowNothing, rollouts: list[Rollout]) -> tuple[Severity, float]:
    config = evidence.config
    mean = mean_return(rollouts, config)
    if player.contentless and mean >= config.contentless_return:
        return Severity.REFUSE, mean
    if not player.contentless and mean >= config.guess_return:
        return Severity.REFUSE, mean
    return (Severity.WARN if mean >= config.warn_return else Severity.INFO), mean


def _free_win(player: KnowNothing, mean: float, severity: Severity, episodes: int) -> str:
    head = f"a player that {player.description} gets a mean return of {mean:.2f} over {episodes} episodes"
    if severity is Severity.WARN:
        return f"{head}. If that is not meant, use more possible answers or pay partial results less."
    if player.name == "echo":
        return f"{head}. The check finds the answer inside any long text: compare the parsed answer with ==, not with `in`."
    if player.name in ("done", "tool_sweep"):
        return f"{head}. The success condition holds without work: make it false at reset and true only after the right calls."
    if player.contentless:
        return f"{head}. Pay only when the parsed answer is right or the goal state is reached."
    if player.name.startswith(("common", "constant", "foreign", "option")):
        return f"{head}. The answer hardly depends on the puzzle: draw it so that many answers are equally likely."
    return f"{head}. The prompt or the feedback gives the answer away, or too many answers are accepted."


def solution(evidence: Evidence) -> list[Finding]:
    """The executable proof: solution() earns the maximal return on every seed."""
    config = evidence.config
    if not evidence.info.has_solution or (not evidence.solutions and not _solution_errors(evidence)):
        severity = Severity.REFUSE if config.require_proof else Severity.INFO
        earned = max((rollout.return_(config) for rollout in evidence.rollouts), default=0.0)
        reason = (
            "unproven: there is no solution(). Add solution() that returns the answer, or the list of actions that win from "
            "the current state."
        )
        return [Finding("solution", severity, reason, {"best_return_seen": round(earned, 3)})]
    missing = [entry.seed for entry in evidence.survey if not entry.solution]
    if missing:
        reason = f"solution() returned nothing on {len(missing)} of {len(evidence.survey)} seeds. Return the answer for every seed."
        return [Finding("solution", Severity.REFUSE, reason, {"seeds": missing})]
    lost = {seed: plays[0] for seed, plays in evidence.solution_plays.items() if plays[0].return_(config) < WIN_RETURN}
    if not lost:
        return []
    seed, play = next(iter(lost.items()))
    proof = {
        **_play(play),
        "solution": [shorten(action) for action in evidence.solutions[seed]][:8],
        "rewards": play.rewards[-8:],
        "terminated": play.terminated,
        "lost_seeds": list(lost),
        "forms_tried": sorted({attempt.policy for attempt in evidence.solution_plays[seed]}),
    }
    reason = f"solution() does not win on {len(lost)} of {len(evidence.solution_plays)} seeds: {_why(evidence, seed)}"
    return [Finding("solution", Severity.REFUSE, reason, proof)]


def _solution_errors(evidence: Evidence) -> bool:
    return any("solution" in entry.errors for entry in evidence.survey)


def _why(evidence: Evidence, seed: int) -> str:
    plays = evidence.solution_plays[seed]
    if (error := plays[0].error) is not None:
        return f"step() failed: {error}."
    best = max(plays, key=lambda play: max(play.rewards, default=0.0))
    rewards = best.rewards
    if rewards and max(rewards) >= WIN_RETURN:
        if not best.terminated:
            return (
                f"reward {max(rewards):g} is paid, but the episode does not terminate. Return terminated=True with the "
                "final reward; an episode that is only truncated counts 0."
            )
        return (
            f"reward {max(rewards):g} is paid on turn {rewards.index(max(rewards)) + 1} of {len(rewards)}, but the last step "
            f"pays {rewards[-1]:g}. The return is the reward of the terminating step: pay 1.0 there."
        )
    if rewards and sum(rewards) >= WIN_RETURN:
        return f"rewards of {sum(rewards):g} are spread over the turns. The return is the reward of the terminating step: pay 1.0 there."
    if rewards and rewards[-1] > 0:
        return f"it earns {rewards[-1]:g} at most. Full success must pay 1.0."
    return (
        f"it earns nothing raw, boxed or in <answer> tags ({shorten(' | '.join(best.actions), 100)!r} was answered by "
        f"{shorten(best.observation, 120)!r}). solution() must return exactly the text that step() accepts, "
        "without explanation, computed from the same state."
    )


def variance(evidence: Evidence) -> list[Finding]:
    """Seeds that any know-nothing policy wins beside seeds that none wins."""
    config = evidence.config
    by_seed: dict[int, list[float]] = {}
    for player, rollouts in evidence.known_nothing.values():
        if not player.contentless:
            for rollout in rollouts[: config.play_seeds]:
                by_seed.setdefault(rollout.seed, []).append(rollout.return_(config))
    means = {seed: statistics.fmean(values) for seed, values in by_seed.items()}
    if not means or max(means.values()) < 0.5 or min(means.values()) > 0.05:
        return []
    spread = statistics.pstdev(means.values())
    reason = f"guessing earns {max(means.values()):.2f} on some seeds and {min(means.values()):.2f} on others. Even out the difficulty."
    return [
        Finding(
            "variance",
            Severity.INFO,
            reason,
            {"mean_by_seed": {str(k): round(v, 3) for k, v in means.items()}, "deviation": round(spread, 3)},
        )
    ]


def _play(rollout: Rollout | None) -> dict[str, Any]:
    if rollout is None:
        return {"policy": "malformed"}
    return {
        "policy": rollout.policy,
        "seed": rollout.seed,
        "actions": [shorten(action) for action in rollout.actions][-8:],
        "observation": shorten(rollout.observation, 300),
    }

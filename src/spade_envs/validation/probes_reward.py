"""Probes of what is paid: range, malformed actions, free wins, spread between seeds."""

from __future__ import annotations

import statistics

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import ProgramError, ProgramRaised
from spade_envs.validation.advice import PARSE, advice, with_line
from spade_envs.validation.evidence import Evidence, mean_return
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.policies import EXOTIC, GENERAL, GUESSABLE, HUGE, NO_ANSWER, KnowNothing
from spade_envs.validation.rollout import Rollout
from spade_envs.validation.shown import play_evidence, quoted, shorten

PAID = 0.5
"""A reward that counts as being paid for a single action."""

_FEWEST_GUESSES = 3  # players of a seed that make a mean


def reward_range(evidence: Evidence) -> list[Finding]:
    """Rewards lie in [-1, 1] and are not negative; returns are in range for the return mode."""
    config = evidence.config
    findings: list[Finding] = []
    paid: list[tuple[float, Rollout | None]] = [(w, rollout) for rollout in evidence.rollouts for w in rollout.rewards]
    paid += [(entry.outcome.value.reward, None) for entry in evidence.malformed if entry.outcome.error is None]
    if not paid:
        return []
    high, low = max(paid, key=lambda pair: pair[0]), min(paid, key=lambda pair: pair[0])
    for reward, rollout in (high, low):
        if abs(reward) > 1:
            reason = f"a reward of {reward:g} is outside [-1, 1]. Pay 1.0 for full success, less for partial, else 0.0."
            findings.append(Finding("reward", Severity.REFUSE, reason, {"reward": reward, **play_evidence(rollout)}))
    if -1 <= low[0] < 0:
        reason = (
            f"a reward of {low[0]:g} is negative. Rewards start at 0.0: pay 0.0 for mistakes, and less than 1.0 at the "
            "end for a poor result."
        )
        proof = {"reward": low[0], **play_evidence(low[1])}
        severity = config.negative_reward
        if config.return_mode == "final" and not _negative_returns(evidence):
            severity = min(severity, Severity.WARN, key=_STRICT.index)
            reason += " (The return is the reward of the terminating step, so this one does not count.)"
        findings.append(Finding("reward", severity, reason, proof))
    if config.return_mode == "sum":
        total, rollout = max(((sum(r.rewards), r) for r in evidence.rollouts), key=lambda pair: pair[0])
        if total > 1 + 1e-6:
            reason = f"the rewards of one episode sum to {total:g}. Their sum may not exceed 1.0."
            findings.append(Finding("reward", Severity.REFUSE, reason, {"sum": total, **play_evidence(rollout)}))
    return findings


def unfinished(evidence: Evidence) -> list[Finding]:
    """Whoever is paid in full is done: the episode ends there."""
    for rollout in sorted(evidence.rollouts, key=lambda rollout: not rollout.policy.startswith("solution")):
        for number, turn in enumerate(rollout.turns, start=1):
            if turn.reward >= WIN_RETURN and not (turn.terminated or turn.truncated):
                reason = (
                    f"step {number} pays {turn.reward:g} and the episode goes on. End the episode when the goal is "
                    "met: return terminated=True with that reward."
                )
                if evidence.config.return_mode == "final":
                    reason += " (The return is the reward of the terminating step, so this one does not count.)"
                proof = {"seed": rollout.seed, "actions": [shorten(action) for action in rollout.actions[:number]][-8:]}
                return [Finding("reward", Severity.WARN, reason, {"reward": turn.reward, **proof})]
    return []


_STRICT = [Severity.INFO, Severity.WARN, Severity.REFUSE]


def _negative_returns(evidence: Evidence) -> bool:
    """Whether a step that terminates an episode was paid less than nothing."""
    ends = [rollout.turns[-1] for rollout in evidence.rollouts if rollout.terminated]
    ends += [entry.outcome.value for entry in evidence.malformed if entry.outcome.error is None]
    return any(end.terminated and end.reward < 0 for end in ends)


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
    raised.sort(key=lambda failure: failure[0] in (EXOTIC, *HUGE))
    seed = evidence.malformed[0].seed
    if raised:
        action, error = raised[0]
        # A player's turn holds some thousand tokens, and no superscripts: what only those and megabytes break costs
        # that player its episode, no more.
        severity = Severity.WARN if action in (EXOTIC, *HUGE) else Severity.REFUSE
        expected = advice(error, PARSE, evidence.info.class_name)
        reason = f"step({quoted(action)}) failed: {with_line(error, evidence.source)}. {expected}"
        shown = [shorten(action) for action, _ in raised][:8]
        proof = {"seed": seed, "actions": shown, "message": shorten(str(error), 300)}
        findings.append(Finding("malformed", severity, reason, proof))
    results = [(entry.action, entry.outcome.value) for entry in evidence.malformed if entry.outcome.error is None]
    paying = [(action, result.reward) for action, result in results if result.terminated and result.reward >= PAID]
    paying = [pair for pair in paying if pair[0] not in GUESSABLE]
    if len(paying) >= 2 or any(action in HUGE or action in NO_ANSWER for action, _ in paying):
        action, reward = paying[0]
        reason = (
            f"the malformed action {quoted(action)} was paid {reward:g}. Compare the parsed answer with the expected "
            "one exactly; beware of substring tests, NaN and empty text."
        )
        shown = [shorten(action) for action, _ in paying][:8]
        findings.append(
            Finding("malformed", Severity.REFUSE, reason, {"seed": seed, "actions": shown, "reward": reward})
        )
    size = max((len(result.observation) for action, result in results if action in HUGE), default=0)
    if size > evidence.config.long_observation:
        reason = (
            "a very long action comes back in the observation. Show the first 100 characters at most: action[:100]."
        )
        findings.append(Finding("malformed", Severity.WARN, reason, {"seed": seed, "size": size}))
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
            proof = {
                **play_evidence(best),
                "mean_return": round(mean, 3),
                "episodes": len(rollouts),
                "also": others[:8],
            }
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
    # A lucky guess or two on the first seeds says nothing: warn of guesses that the confirmation seeds bear out.
    sure = player.contentless or len(rollouts) > config.play_seeds
    return (Severity.WARN if sure and mean >= config.warn_return else Severity.INFO), mean


def _free_win(player: KnowNothing, mean: float, severity: Severity, episodes: int) -> str:
    head = f"a player that {player.description} gets a mean return of {mean:.2f} over {episodes} episodes"
    if severity is Severity.WARN:
        return f"{head}. If that is not meant, use more possible answers or pay partial results less."
    if player.name == "echo":
        return f"{head}. The check finds the answer inside a longer text: compare the parsed answer with ==, not `in`."
    if player.name in ("done", "tool_sweep"):
        return f"{head}. Success needs no work: make its condition false at reset and true only after the right calls."
    if player.contentless:
        return f"{head}. Pay only when the parsed answer is right or the goal state is reached."
    if player.name.startswith(("common", "constant", "foreign", "option")):
        return f"{head}. The answer hardly depends on the puzzle: draw it so that many answers are equally likely."
    return f"{head}. The prompt or the feedback gives the answer away, or too many answers are accepted."


def variance(evidence: Evidence) -> list[Finding]:
    """Seeds that any know-nothing policy wins beside seeds that none wins."""
    config = evidence.config
    by_seed: dict[int, list[float]] = {}
    for player, rollouts in evidence.known_nothing.values():
        if not player.contentless and len(rollouts) >= config.play_seeds:
            for rollout in rollouts[: config.play_seeds]:
                by_seed.setdefault(rollout.seed, []).append(rollout.return_(config))
    if any(len(values) < _FEWEST_GUESSES for values in by_seed.values()):  # one guess that happens to fit is no mean
        return []
    means = {seed: statistics.fmean(values) for seed, values in by_seed.items()}
    if not means or max(means.values()) < 0.5 or min(means.values()) > 0.05:
        return []
    high, low = max(means.values()), min(means.values())
    reason = f"guessing earns {high:.2f} on some seeds and {low:.2f} on others. Even out the difficulty."
    proof = {
        "mean_by_seed": {str(seed): round(mean, 3) for seed, mean in means.items()},
        "deviation": round(statistics.pstdev(means.values()), 3),
    }
    return [Finding("variance", Severity.INFO, reason, proof)]

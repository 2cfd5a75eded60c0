"""The executable proof: what solution() says must win."""

from __future__ import annotations

from spade_envs.record import WIN_RETURN
from spade_envs.validation.advice import advice, with_line
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.shown import play_evidence, shorten

_EXACT = (
    "solution() must return exactly the text that step() accepts (or a list of such texts), without explanation, "
    "computed from the same state."
)


def solution(evidence: Evidence) -> list[Finding]:
    """The executable proof: solution() earns the maximal return on every seed."""
    config = evidence.config
    if not evidence.info.has_solution or (not evidence.solutions and not _solution_errors(evidence)):
        severity = Severity.REFUSE if config.require_proof else Severity.INFO
        earned = max((rollout.return_(config) for rollout in evidence.rollouts), default=0.0)
        reason = (
            "unproven: there is no solution(). Add one that returns the answer, or the list of actions that win from "
            "the current state."
        )
        return [Finding("solution", severity, reason, {"best_return_seen": round(earned, 3)})]
    missing = [entry.seed for entry in evidence.survey if not entry.solution]
    if missing:
        reason = (
            f"solution() returned nothing on {len(missing)} of {len(evidence.survey)} seeds. Return it for every seed."
        )
        return [Finding("solution", Severity.REFUSE, reason, {"seeds": missing})]
    lost = {seed: plays[0] for seed, plays in evidence.solution_plays.items() if plays[0].return_(config) < WIN_RETURN}
    if not lost:
        return []
    seed, play = next(iter(lost.items()))
    proof = {
        **play_evidence(play),
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
        return f"step() failed: {with_line(error, evidence.source)}. {advice(error, _EXACT, evidence.info.class_name)}"
    best = max(plays, key=lambda play: max(play.rewards, default=0.0))
    moves, turns = len(evidence.solutions[seed]), len(best.actions)
    if best.ended and not best.terminated and turns < moves:
        return (
            f"the episode is truncated after {turns} turns, and the solution of seed {seed} has {moves} moves. Raise "
            "max_turns so that a careful player has turns to spare, or draw tasks that need fewer."
        )
    rewards = best.rewards
    high, last = max(rewards, default=0.0), rewards[-1] if rewards else 0.0
    if high >= WIN_RETURN and not best.terminated:
        return (
            f"reward {high:g} is paid, but the episode does not terminate. Return terminated=True with the final "
            "reward; an episode that is only truncated counts 0."
        )
    if high >= WIN_RETURN:
        return (
            f"reward {high:g} is paid on turn {rewards.index(high) + 1} of {len(rewards)}, but the last step pays "
            f"{last:g}. The return is the reward of the terminating step: pay 1.0 there."
        )
    if sum(rewards) >= WIN_RETURN:
        return (
            f"rewards of {sum(rewards):g} are spread over the turns. The return is the reward of the terminating step: "
            "pay 1.0 there."
        )
    if last > 0:
        return f"it earns {last:g} at most. Full success must pay 1.0."
    return (
        f"it earns nothing raw, boxed or in <answer> tags ({_shown(best.actions)} was answered by "
        f"{shorten(best.observation, 120)!r}). {_EXACT}"
    )


def _shown(actions: list[str]) -> str:
    """The actions of a play in few words: one, one again and again, or the first of several."""
    if len(set(actions)) == 1:
        return repr(shorten(actions[0], 100)) + (f", {len(actions)} times," if len(actions) > 1 else "")
    return repr(shorten(" | ".join(actions), 100))

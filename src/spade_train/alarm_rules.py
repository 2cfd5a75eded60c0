"""When alarms are raised, and what they advise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean, median

from spade_train.alarms import WINDOW, History, Rule

_BLOCK = 8  # cycles of one of the four blocks that are compared for slowing down


def one_idea(history: History) -> str:
    """Programs that resemble each other, or that are there already."""
    ideas = history.mean("diversity/ideas")
    if ideas is not None and ideas < 1.5:
        return f"the programs of a cycle resemble each other: {ideas:.1f} different ones in effect (Vendi score)"
    repeated = history.mean("design/duplicate")
    if repeated is not None and repeated > 0.6:
        return f"{repeated:.0%} of the programs repeat one that there is already, over {WINDOW} cycles"
    return ""


def passwords(history: History) -> str:
    """Environments that nobody wins without the hint and everybody wins with it, or hints that hold the answer."""
    share = history.mean("environment/password")
    if share is not None and share >= 0.5:
        return f"{share:.0%} of the new environments are always lost without the hint and always won with it"
    told, gained = history.mean("hint/answer"), history.mean("environment/regret")
    if told is not None and gained is not None and told >= 0.5 and gained >= 0.3:
        return f"{told:.0%} of the hints hold the action that wins, and hints gain {gained:.2f} of return"
    return ""


def invalid(history: History) -> str:
    """Fewer programs pass validation than before, or hardly any."""
    values = history.values("design/valid")
    now = history.mean("design/valid")
    if now is None:
        return ""
    if now < 0.05:
        return f"{now:.0%} of the programs pass validation, over {WINDOW} cycles"
    earlier = values[:-WINDOW]
    means = [fmean(earlier[start : start + WINDOW]) for start in range(0, len(earlier) - WINDOW + 1, WINDOW)]
    if means and now < 0.5 * max(means):
        return f"{now:.0%} of the programs pass validation; it was {max(means):.0%}"
    return ""


def silent(role: str) -> Callable[[History], str]:
    """All advantages of a role are zero."""

    def check(history: History) -> str:
        shares = history.last(f"advantage/{role}_zero_share")
        if shares and min(shares) >= 0.99:
            return f"all advantages of the {role} were zero for {WINDOW} cycles: it learns nothing"
        return ""

    return check


def ended_by(reason: str, words: str) -> Callable[[History], str]:
    """Many plain episodes are ended by a limit."""

    def check(history: History) -> str:
        share = history.share([f"stop/{reason}"], "stop/")
        return f"{share:.0%} of the episodes {words}" if share is not None and share > 0.25 else ""

    return check


def cut_designs(history: History) -> str:
    """Many programs are cut by their token limit."""
    share = history.mean("design/cut")
    return f"{share:.0%} of the programs were cut by their token limit" if share is not None and share > 0.25 else ""


def kl_explodes(history: History) -> str:
    """The policy runs away from the reference."""
    now = history.mean("kl", 3)
    if now is None:
        return ""
    if now > 10.0:
        return f"the KL divergence from the reference is {now:.3g} nats a token"
    earlier = history.values("kl")[:-3]
    usual = median(earlier) if len(earlier) >= WINDOW else None
    if usual is not None and now > 0.5 and now > 10.0 * usual:
        return f"the KL divergence from the reference is {now:.3g} nats a token; it was {usual:.3g}"
    return ""


def entropy_collapses(history: History) -> str:
    """The policy says the same whatever is asked."""
    values = history.values("entropy")
    if len(values) < 2 * WINDOW:
        return ""
    now, before = fmean(values[-WINDOW:]), fmean(values[:WINDOW])
    if now < 0.1 * before or now < 0.002:
        return f"the entropy of the policy fell from {before:.3g} to {now:.3g} nats a token"
    return ""


def weak_isolation(history: History) -> str:
    """Generated programs run with less isolation than there could be."""
    level = history.last("sandbox/isolation", 1)
    if level and level[-1] < 1.0:
        return "generated programs run without full isolation"
    return ""


def sick_sandbox(history: History) -> str:
    """Workers die or time out in many episodes."""
    parts = {name: history.mean(f"sandbox/{name}") or 0.0 for name in ("died", "timeout", "quarantined")}
    share = sum(parts.values())
    if share > 0.1:
        words = ", ".join(f"{name} {value:.0%}" for name, value in parts.items() if value)
        return f"{share:.0%} of the episodes were lost to their program's worker ({words})"
    return ""


def barren(history: History) -> str:
    """No new environment comes."""
    values = history.last("design/admitted", 2 * WINDOW)
    return f"no new environment was admitted in {2 * WINDOW} cycles" if values and not any(values) else ""


def slowing(history: History) -> str:
    """A token takes longer and longer, beyond what a busy machine explains: four blocks of cycles, each slower."""
    costs = [
        line["step_time"] / tokens
        for line in history.lines
        if "step_time" in line and (tokens := sum(v for name, v in line.items() if name.startswith("tokens/"))) > 0
    ]
    if len(costs) < 4 * _BLOCK:
        return ""
    size = len(costs) // 4
    blocks = [median(costs[len(costs) - (4 - n) * size :][:size]) for n in range(4)]
    if all(later > 1.25 * earlier for earlier, later in pairwise(blocks)) and blocks[-1] > 3.0 * blocks[0]:
        return f"a step takes {blocks[-1] / blocks[0]:.1f} times as long for each token as at first, and ever longer"
    return ""


def truncated_ratios(history: History) -> str:
    """The policy that sampled and the one that is trained disagree."""
    share = history.mean("off_policy/truncated_share")
    if share is not None and share > 0.2:
        return f"{share:.0%} of the importance ratios of delayed programs are truncated"
    ratio = history.mean("sampling/importance_sampling_ratio/mean")
    if ratio is not None and not 0.5 < ratio < 2.0:
        return f"sampled and trained probabilities differ: their mean ratio is {ratio:.2f}"
    return ""


def not_finite(history: History) -> str:
    """The loss or another figure is no number."""
    count = history.last("not_finite", 1)
    if count and "not_finite" in history.lines[-1]:
        return f"{count[-1]:.0f} of the step's figures are not finite"
    return ""


RULES = (
    Rule(
        "one_idea", "critical", one_idea,
        "Look at the latest programs (spade view). Check that the corpus has many different documents, raise the "
        "temperature or duplicate_reward's penalty, and use a memory that is not empty.",
    ),
    Rule(
        "passwords", "critical", passwords,
        "Hints give the answer away, so regret pays for nothing. Use designer_reward blend, which also asks for wins "
        "without the hint, and read some hints (spade show).",
    ),
    Rule(
        "invalid", "critical", invalid,
        "See refused/<probe> for the reason. Lower the learning rate, resume from an earlier checkpoint, or set "
        "invalid_reward below 0.",
    ),
    Rule(
        "silent_designer", "critical", silent("designer"),
        "All programs of a group are paid alike: raise designs, or see whether all are refused or all are mastered.",
    ),
    Rule(
        "silent_agent", "critical", silent("agent"),
        "Every environment is always won or always lost: raise plays or replay_share, or start from an easier corpus "
        "or a stronger model.",
    ),
    Rule(
        "context", "warning", ended_by("context_limit", "no longer fitted into the context"),
        "Raise context_tokens, or lower max_turns or turn_tokens.",
    ),
    Rule(
        "token_budget", "warning", ended_by("token_budget", "used up their token budget"),
        "Raise episode_tokens, or lower turn_tokens so that more turns fit.",
    ),
    Rule("cut_designs", "warning", cut_designs, "Raise design_tokens."),
    Rule(
        "kl", "critical", kl_explodes,
        "Lower the learning rate or raise beta, and resume from an earlier checkpoint.",
    ),
    Rule(
        "entropy", "critical", entropy_collapses,
        "Lower the learning rate, raise temperature or beta, and resume from an earlier checkpoint.",
    ),
    Rule("isolation", "warning", weak_isolation, "See spade doctor for what is missing and how to get it."),
    Rule(
        "sandbox", "warning", sick_sandbox,
        "Programs die or run too long: is the machine out of memory or very busy? Lower sandbox_workers, and see the "
        "error of the episodes in the transcripts.",
    ),
    Rule(
        "barren", "critical", barren,
        "The memory does not grow. See refused/<probe> and design/duplicate for the reason.",
    ),
    Rule(
        "slowing", "warning", slowing,
        "See which of seconds/* grows: play (the sandbox), admit (the memory), or the update (longer rows).",
    ),
    Rule(
        "ratios", "warning", truncated_ratios,
        "With delayed programs lower the learning rate or the cycles between regenerations; with vLLM check that both "
        "sides use the same precision and sampling settings.",
    ),
    Rule(
        "not_finite", "critical", not_finite,
        "Lower the learning rate, use bf16 instead of fp16, and resume from an earlier checkpoint.",
    ),
)  # fmt: skip
"""All rules; their names are those of docs/training.md."""

"""Success of a policy on a fixed set of programs that it never trained on."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from spade_envs.batching import own_hints
from spade_envs.models.base import ChatModel, Sampling
from spade_envs.play import Episode, PlayConfig, PlayTask, play_episodes
from spade_envs.record import WIN_RETURN

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox

BUILTIN = "builtin:nano"
_PROGRAMS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class HeldoutProgram:
    """One program of the set. ``tier`` groups programs of like difficulty."""

    id: str
    source: str
    tier: int = 0
    skill: str = ""


@dataclass(frozen=True, slots=True)
class HeldoutResult:
    """What a policy achieved. Rates are shares of episodes won."""

    success: float
    episodes: int
    by_tier: Mapping[int, float] = field(default_factory=dict)
    stops: Mapping[str, int] = field(default_factory=dict)  # episodes by StopReason
    tokens: int = 0  # of all replies
    tier_episodes: Mapping[int, int] = field(default_factory=dict)


def load_programs(source: str | Path) -> list[HeldoutProgram]:
    """Read a JSONL file with ``id`` and ``source`` (and ``tier``, ``skill``) in each line, or ``builtin:nano``.

    Raises:
        ValueError: if the file is missing, empty, or a line lacks a field.
    """
    path = Path(str(files("spade_train.evaluation") / "heldout.jsonl")) if str(source) == BUILTIN else Path(source)
    if not path.is_file():
        raise ValueError(f"held-out set {source} does not exist; expected a JSONL file or {BUILTIN}")
    programs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            program = HeldoutProgram(str(row["id"]), row["source"], int(row.get("tier", 0)), row.get("skill", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: expected an object with id and source: {error!r}") from error
        programs.append(program)
    if not programs:
        raise ValueError(f"held-out set {path} is empty")
    return programs


def evaluate(
    model: ChatModel,
    programs: Sequence[HeldoutProgram],
    sandbox: Sandbox,
    play: PlayConfig,
    *,
    seeds: int = 2,
    temperature: float = 0.0,
    hinted: bool = False,
    sampling_seed: int = 0,
) -> HeldoutResult:
    """Play every program on fixed seeds 0 to ``seeds - 1``.

    Args:
        model: the policy.
        programs: the set.
        sandbox: runs them.
        play: budgets and prompts, those of training.
        seeds: episodes of each program.
        temperature: 0 is greedy.
        hinted: whether the program's own ``hint()`` is appended to the first observation.
        sampling_seed: for temperatures above 0.

    Raises:
        ProgramError: if a program of the set cannot be loaded.
        ModelError: if the policy cannot be used.
    """
    episodes: list[tuple[HeldoutProgram, Episode]] = []
    sampling = Sampling(play.turn_tokens, temperature, seed=sampling_seed)
    for start in range(0, len(programs), _PROGRAMS_AT_ONCE):
        chunk = programs[start : start + _PROGRAMS_AT_ONCE]
        with ExitStack() as stack:
            opened = [sandbox.open(one.source) for one in chunk]
            for program in opened:
                stack.callback(program.close)
            wanted = [(program, seed) for program in opened for seed in range(seeds)]
            hints = own_hints(sandbox, wanted) if hinted else [None] * len(wanted)
            owners = [one for one in chunk for _ in range(seeds)]
            tasks = [PlayTask(program, seed, hint, one.id) for one, (program, seed), hint in zip(owners, wanted, hints)]
            episodes += zip(owners, play_episodes(model, tasks, sandbox, play, sampling))
    return _result(episodes)


def _result(episodes: Sequence[tuple[HeldoutProgram, Episode]]) -> HeldoutResult:
    tiers: dict[int, list[bool]] = defaultdict(list)
    for program, episode in episodes:
        tiers[program.tier].append(episode.return_ >= WIN_RETURN)
    return HeldoutResult(
        success=fmean(won for wins in tiers.values() for won in wins),
        episodes=len(episodes),
        by_tier={tier: fmean(wins) for tier, wins in sorted(tiers.items())},
        tier_episodes={tier: len(wins) for tier, wins in sorted(tiers.items())},
        stops=dict(Counter(str(episode.stop) for _, episode in episodes)),
        tokens=sum(episode.tokens for _, episode in episodes),
    )


def merge(results: Sequence[HeldoutResult]) -> HeldoutResult:
    """Return what several processes achieved together, each on its share of the programs.

    Raises:
        ValueError: if none of them played an episode.
    """
    played: Counter[int] = Counter()
    won: Counter[int] = Counter()
    stops: Counter[str] = Counter()
    for result in results:
        played.update(result.tier_episodes)
        won.update({tier: round(rate * result.tier_episodes[tier]) for tier, rate in result.by_tier.items()})
        stops.update(result.stops)
    if not played:
        raise ValueError("no held-out episode was played")
    return HeldoutResult(
        success=won.total() / played.total(),
        episodes=played.total(),
        by_tier={tier: won[tier] / count for tier, count in sorted(played.items())},
        stops=dict(stops),
        tokens=sum(result.tokens for result in results),
        tier_episodes=dict(sorted(played.items())),
    )

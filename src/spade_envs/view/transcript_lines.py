"""Lines of transcripts as pages show them; what does not fit (another version, a hostile file) is passed over."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spade_envs.view.run_files import whole

_CLASS = re.compile(r"^class[ \t]+(\w{1,80})", re.MULTILINE)
_MOST = 500  # turns, and returns of a program, that are shown


@dataclass(frozen=True, slots=True)
class DesignLine:
    """One written program."""

    place: int
    step: int
    rank: int
    group: str
    name: str  # of the class, as far as it can be told
    status: str
    reason: str
    id: str
    source: str
    hint: str
    reward: float | None
    advantage: float | None  # None: not trained, or the file does not hold it
    plain: tuple[float, ...]
    hinted: tuple[float, ...]

    @classmethod
    def of(cls, line: Mapping[str, Any], place: int = 0) -> DesignLine:
        """Read a line of the type ``design``."""
        source = text(line.get("source"))
        found = _CLASS.findall(source[:20_000])
        return cls(
            place=place,
            step=whole(line.get("step")),
            rank=whole(line.get("rank")),
            group=text(line.get("group")) or text(line.get("skill")),
            name=text(line.get("name")) or (found[-1] if found else ""),
            status=text(line.get("status")),
            reason=text(line.get("reason")),
            id=text(line.get("id")),
            source=source,
            hint=text(line.get("hint")),
            reward=figure(line.get("reward")),
            advantage=figure(line.get("advantage")),
            plain=_figures(line.get("plain")),
            hinted=_figures(line.get("hinted")),
        )


class Said(NamedTuple):
    """One message."""

    role: str
    content: str


class Turn(NamedTuple):
    """One reply and what came of it."""

    action: str
    observation: str
    reward: float | None
    ended: str
    info: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EpisodeLine:
    """One stored episode."""

    step: int | None  # None: not of a training run
    key: str
    seed: int
    hinted: bool
    return_: float | None
    stop: str
    error: str
    advantage: float | None
    trained: bool | None  # None where the file does not say
    opening: tuple[Said, ...]  # before the first reply
    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> EpisodeLine:
        """Read a line that has messages.

        Raises:
            LookupError: if it has none.
        """
        if not isinstance(line.get("messages"), list):
            raise LookupError("this line holds no episode")
        messages = [_said(one) for one in line["messages"] if isinstance(one, dict)]
        first = next((place for place, one in enumerate(messages) if one.role == "assistant"), len(messages))
        return cls(
            step=whole(line["step"]) if "step" in line else None,
            key=text(line.get("key")),
            seed=whole(line.get("seed")),
            hinted=bool(line.get("hinted") or line.get("hint")),
            return_=figure(line.get("return")),
            stop=text(line.get("stop")),
            error=text(line.get("error")),
            advantage=figure(line.get("advantage")),
            trained=_trained(line),
            opening=tuple(messages[:first]),
            turns=tuple(_turns(line, messages[first:])[:_MOST]),
        )


class Placed(NamedTuple):
    """A program of a step with its reward minus the mean of its group."""

    line: DesignLine
    centred: float | None


def grouped(designs: Sequence[DesignLine]) -> list[tuple[str, list[Placed]]]:
    """Return the programs of a step by the group and rank in which they were compared, the best paid first."""
    groups: defaultdict[str, list[DesignLine]] = defaultdict(list)
    for line in designs:
        groups[f"{line.group} · rank {line.rank}" if line.rank else line.group].append(line)
    found = []
    for name, lines in groups.items():
        paid = [line.reward for line in lines if line.reward is not None]
        mean = sum(paid) / len(paid) if paid else 0.0
        placed = [Placed(line, None if line.reward is None else line.reward - mean) for line in lines]
        placed.sort(key=lambda one: -math.inf if one.centred is None else one.centred, reverse=True)
        found.append((name, placed))
    return found


def text(value: Any) -> str:
    """Return a text from a file, "" where there is none."""
    return value if isinstance(value, str) else "" if value is None else str(value)[:10_000]


def figure(value: Any) -> float | None:
    """Return a finite number from a file, None where there is none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e300:
        return None
    return float(value)


def _figures(values: Any) -> tuple[float, ...]:
    found = map(figure, values[:_MOST]) if isinstance(values, list) else ()
    return tuple(value for value in found if value is not None)


def _said(message: Mapping[str, Any]) -> Said:
    content = text(message.get("content"))
    if calls := message.get("tool_calls"):
        content = f"{content}\n{text(calls)}".lstrip("\n")
    return Said(text(message.get("role")) or "?", content)


def _trained(line: Mapping[str, Any]) -> bool | None:
    """Hinted episodes only measure regret; files that hold advantages have one for each row of an update."""
    if "step" not in line:
        return None
    return line["advantage"] is not None if "advantage" in line else not line.get("hinted")


def _turns(line: Mapping[str, Any], messages: Sequence[Said]) -> list[Turn]:
    """Steps say turns best; where a file holds none, they are read off the messages and the rewards."""
    steps = line.get("steps")
    if isinstance(steps, list) and steps and all(isinstance(step, dict) for step in steps):
        return [
            Turn(
                text(step.get("action")),
                text(step.get("observation")),
                figure(step.get("reward")),
                "terminated" if step.get("terminated") else "truncated" if step.get("truncated") else "",
                step["info"] if isinstance(step.get("info"), dict) else {},
            )
            for step in steps[:_MOST]
        ]
    rewards = line["rewards"] if isinstance(line.get("rewards"), list) else []
    turns: list[Turn] = []
    for role, content in messages[: 4 * _MOST]:
        if role == "assistant":
            reward = figure(rewards[len(turns)]) if len(turns) < len(rewards) else None
            turns.append(Turn(content, "", reward, "", {}))
        else:
            last = turns[-1]
            turns[-1] = last._replace(observation=f"{last.observation}\n{content}".lstrip("\n"))
    return turns

"""Lines of transcripts as pages show them; what a file leaves out is passed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any


def trained(line: dict[str, Any]) -> bool | None:
    """Return whether the policy was trained on a stored episode's replies; None where the file does not say.

    Hinted episodes only measure regret. Files that hold advantages have one for each row of an update.
    """
    if "step" not in line:
        return None
    return line.get("advantage") is not None if "advantage" in line else not line.get("hinted")


def opening(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a stored episode before its first reply."""
    found = []
    for message in line["messages"]:
        if not isinstance(message, dict) or message.get("role") == "assistant":
            break
        found.append(message)
    return found


def turns_of(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the turns of a stored episode: reply, observation, reward, how it ended.

    Steps say them best; where a file holds none, they are read off the messages and the rewards.
    """
    steps = line.get("steps")
    if isinstance(steps, list) and steps and all(isinstance(step, dict) for step in steps):
        return [
            {
                "action": step.get("action", ""),
                "observation": step.get("observation", ""),
                "reward": step.get("reward"),
                "ended": "terminated" if step.get("terminated") else "truncated" if step.get("truncated") else "",
                "info": step.get("info") or {},
            }
            for step in steps
        ]
    rewards: list[Any] = line["rewards"] if isinstance(line.get("rewards"), list) else []
    turns: list[dict[str, Any]] = []
    for message in line["messages"]:
        role, content = (message.get("role"), message.get("content", "")) if isinstance(message, dict) else ("", "")
        if role == "assistant":
            reward = rewards[len(turns)] if len(turns) < len(rewards) else None
            turns.append({"action": content, "observation": "", "reward": reward, "ended": "", "info": {}})
        elif turns:
            turns[-1]["observation"] += str(content)
    return turns


def grouped(designs: Sequence[tuple[int, dict[str, Any]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the programs of a step by the group that they were compared in, the best paid first.

    Where a file holds no advantages, ``centred`` is the reward minus the mean of the group.
    """
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for place, line in designs:
        name = str(line.get("group") or line.get("skill") or "")
        groups[f"{name} · rank {line['rank']}" if line.get("rank") else name].append({**line, "place": place})
    found = []
    for name, lines in groups.items():
        paid = [line["reward"] for line in lines if isinstance(line.get("reward"), int | float)]
        mean = sum(paid) / len(paid) if paid else 0.0
        for line in lines:
            reward = line.get("reward")
            line["centred"] = reward - mean if isinstance(reward, int | float) else None
        lines.sort(key=lambda line: -line["reward"] if isinstance(line.get("reward"), int | float) else 2.0)
        found.append((name, lines))
    return found

"""Players that are not models: a person, chance, one that knows nothing, and the program's own solution."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from spade_envs.answers import answer_forms
from spade_envs.batching import describe, run_operations
from spade_envs.episode import Episode
from spade_envs.play import Player, Reply, play_episodes
from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import Operation
from spade_envs.terminal import visible

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox

PLAYER_NAMES = ("human", "random", "know-nothing", "solution")

_WORD = re.compile(r"[\w.+-]{1,40}")
_FIXED = ("", "1", "0", "yes", "no", "A", "help", "\\boxed{}", "\\boxed{1}", "\\boxed{A}", "<answer>done</answer>")
_FORMS = 3


def scripted_player(name: str, *, sandbox: Sandbox, seed: int = 0) -> Player:
    """Return the player called ``name``, one of :data:`PLAYER_NAMES`.

    Args:
        name: which player.
        sandbox: where the solution player tries its answers.
        seed: for the players that draw.

    Raises:
        ValueError: if there is no such player.
    """
    if name == "human":
        return HumanPlayer(write=lambda text: print(visible(text)))
    if name == "random":
        return RandomPlayer(seed)
    if name == "know-nothing":
        return KnowNothingPlayer(seed)
    if name == "solution":
        return SolutionPlayer(sandbox)
    raise ValueError(f"expected one of {', '.join(PLAYER_NAMES)}, got {name!r}")


class HumanPlayer:
    """A person at a terminal; sees what is new in the conversation and types one line.

    Args:
        read: returns one line, raises EOFError at the end.
        write: shows a text.
    """

    name = "human"

    def __init__(self, read: Callable[[str], str] = input, write: Callable[[str], None] = print) -> None:
        self._read, self._write = read, write

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Ask for one line for each episode; the end of input ends the episode."""
        return [self._reply(episode) for episode in episodes]

    def _reply(self, episode: Episode) -> Reply:
        if episode.turns == 0:
            for message in episode.messages[:-1]:
                self._write(message["content"] + "\n")
        self._write(episode.messages[-1]["content"])
        try:
            return Reply(self._read("> "))
        except EOFError:
            return Reply("", error="the input ended")


class RandomPlayer:
    """Says a word or number of the latest message, or a random number; boxed every other time.

    The replies depend on the seed, the episode's own seed and the conversation only.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Draw one reply for each episode."""
        return [Reply(self._draw(episode)) for episode in episodes]

    def _draw(self, episode: Episode) -> str:
        rng = random.Random(f"{self.seed}/{episode.task.seed}/{episode.turns}")
        words = _WORD.findall(episode.messages[-1]["content"][:20_000])
        word = rng.choice(words) if words and rng.random() < 0.8 else str(rng.randint(0, 20))
        return f"\\boxed{{{word}}}" if rng.random() < 0.5 else word


class KnowNothingPlayer:
    """Says stock phrases without looking at the environment; whatever pays it pays for nothing."""

    name = "know-nothing"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Draw one stock phrase for each episode."""
        return [
            Reply(random.Random(f"{self.seed}/{episode.task.seed}/{episode.turns}").choice(_FIXED))
            for episode in episodes
        ]


class SolutionPlayer:
    """Plays what the program's ``solution()`` says, in the form that the program accepts.

    The forms (raw, boxed, in answer tags) are tried on scratch sessions with the same seed; the first that wins, or
    else the one with the best return, is then played. Where a solution ends before the episode does,
    ``solution()`` is asked again.
    """

    name = "solution"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._plans: WeakKeyDictionary[Episode, list[str]] = WeakKeyDictionary()
        self._errors: WeakKeyDictionary[Episode, str] = WeakKeyDictionary()

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Return the next action of each plan; a program without a solution gives a reply with an error."""
        self._make_plans([episode for episode in episodes if episode not in self._plans])
        replies = []
        for episode in episodes:
            plan = self._plans[episode]
            error = self._errors.get(episode, "")
            if not plan:
                replies.append(Reply("", error=error or "the solution does not repeat: this episode went another way"))
            else:
                replies.append(Reply(plan.pop(0)))
        return replies

    def _make_plans(self, episodes: Sequence[Episode]) -> None:
        best: dict[int, Episode] = {}
        for form in range(_FORMS):
            for config in {id(episode.config): episode.config for episode in episodes}.values():
                open_ones = [
                    index
                    for index, episode in enumerate(episodes)
                    if episode.config is config and (index not in best or best[index].return_ < WIN_RETURN)
                ]
                tasks = [episodes[index].task for index in open_ones]
                tried = play_episodes(_FormPlayer(self._sandbox, form), tasks, self._sandbox, config)
                for index, trial in zip(open_ones, tried, strict=True):
                    if index not in best or trial.return_ > best[index].return_:
                        best[index] = trial
        for index, episode in enumerate(episodes):
            self._plans[episode] = [step.action for step in best[index].steps]
            self._errors[episode] = best[index].error


class _FormPlayer:
    """Plays the solution with every action in one form."""

    name = "solution"

    def __init__(self, sandbox: Sandbox, form: int) -> None:
        self._sandbox, self._form = sandbox, form
        self._plans: WeakKeyDictionary[Episode, list[str]] = WeakKeyDictionary()

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        """Return the next action of each episode's solution."""
        asking = [episode for episode in episodes if not self._plans.get(episode)]
        requests = [(episode.task.program, Operation("solution", episode.session)) for episode in asking]
        errors: dict[int, str] = {}
        for episode, outcome in zip(asking, run_operations(self._sandbox, requests), strict=True):
            self._plans[episode] = list(outcome.value or [])
            if outcome.error is not None:
                errors[id(episode)] = describe(outcome.error)
        return [self._next(episode, errors.get(id(episode), "")) for episode in episodes]

    def _next(self, episode: Episode, error: str) -> Reply:
        plan = self._plans[episode]
        if not plan:
            return Reply("", error=error or "the program offers no solution()")
        forms = answer_forms(plan.pop(0))
        return Reply(forms[min(self._form, len(forms) - 1)])

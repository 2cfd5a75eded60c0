"""Supervised samples of both roles, rendered through the prompt set and the chat template that everyone uses."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spade_envs.designer.prompts import PromptSet
from spade_envs.models.base import Message
from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_train.nano.corpus import write_document
from spade_train.nano.draws import COUNTS, EASY, EVEN, FIRST, adopt, draw_spec, vary
from spade_train.nano.grammar import DESIGN_WORDS, SKILLS, TOPICS, WORDS, Spec, class_pieces, reserved
from spade_train.nano.grammar import source as program
from spade_train.nano.players import Game, Player
from spade_train.tokens import ChatTokens


class Sample(NamedTuple):
    """Token ids and, for each, whether the model is to learn it."""

    ids: list[int]
    learn: list[bool]


@dataclass(frozen=True)
class SampleMaker:
    """Draws training samples; everything random comes from the generator that is passed in."""

    prompts: PromptSet
    chat: ChatTokens

    def designer(self, rng: random.Random) -> Sample:
        """A design prompt (document, skill, up to three exemplars) and the program to write."""
        skill = rng.choice(SKILLS)
        document = write_document(rng, "") if rng.random() < 0.9 else None
        text = document.text if document else ""
        words = [word for word in _words(text) if word in DESIGN_WORDS][:6]
        topic = next((word for word in _words(text) if word in TOPICS), "")
        exemplars, negatives = _exemplars(rng, skill)
        spec = self._unreserved(rng, skill, words, topic, [*exemplars, *negatives])
        messages = self.prompts.designer_messages(
            document, skill, [record for _, record in exemplars], [record for _, record in negatives]
        )
        return self._turn(self.chat.prompt(messages), program(spec))

    def agent(self, rng: random.Random, *, first: bool = False) -> Sample:
        """One episode of the imperfect player, plain or hinted; ``first`` asks for an easy one."""
        hinted = rng.random() < 0.35
        sizes, counts = (FIRST, (1.0, 0.0, 0.0)) if first else (EVEN if hinted else EASY, COUNTS)
        while True:
            skill = rng.choices(SKILLS, (5, 4, 4, 3, 3))[0]
            spec = draw_spec(rng, skill, rng.sample(WORDS, 5), sizes=sizes, counts=counts)
            if not reserved(spec):
                break
        game = Game(spec, rng.getrandbits(30))
        player = Player(game, rng, hinted=hinted)
        messages: list[Message] = [{"role": "system", "content": self.prompts.agent_system}]
        hint = self.prompts.hint_template.format(hint=game.hint) if hinted else ""
        messages.append({"role": "user", "content": game.observation + hint})
        sample = Sample(self.chat.prompt(messages), [])
        sample.learn.extend([False] * len(sample.ids))
        while True:
            reply = player.reply()
            self._add(sample, f" {reply}")
            game.step(reply)
            if game.done:
                return sample
            seen = self.chat.observation(game.observation, closed=True)
            sample.ids.extend(seen)
            sample.learn.extend([False] * len(seen))

    def _unreserved(
        self,
        rng: random.Random,
        skill: str,
        words: Sequence[str],
        topic: str,
        shown: Sequence[tuple[Spec, EnvironmentRecord]],
    ) -> Spec:
        while True:
            spec = self._design(rng, skill, words, topic, shown)
            if not reserved(spec):
                return spec

    @staticmethod
    def _design(
        rng: random.Random,
        skill: str,
        words: Sequence[str],
        topic: str,
        shown: Sequence[tuple[Spec, EnvironmentRecord]],
    ) -> Spec:
        """A new program, or a variation of one that was shown: harder if it was solved, easier if hopeless."""
        fresh = draw_spec(rng, skill, words, topic)
        if not shown or rng.random() < 0.35:
            return fresh
        spec, record = rng.choice(shown)
        won = record.statistics.win_rate
        direction = 0 if won is None else 1 if won > 0.55 else -1 if won < 0.25 else rng.choice((-1, 0, 1))
        return vary(adopt(spec, fresh, topic), direction, rng, topic)

    def _turn(self, prompt: list[int], text: str) -> Sample:
        sample = Sample(list(prompt), [False] * len(prompt))
        self._add(sample, text)
        return sample

    def _add(self, sample: Sample, text: str) -> None:
        ids = [*self.chat.tokenizer.encode(text), self.chat.eos]
        sample.ids.extend(ids)
        sample.learn.extend([True] * len(ids))


def played_record(spec: Spec, rate: float | None, rng: random.Random) -> EnvironmentRecord:
    """A record of ``spec`` that was won by ``rate`` of 16 plain plays (None: never played), and more with the hint."""
    name = "".join(class_pieces(spec)[1:-1]) + "Env"
    record = EnvironmentRecord.create(program(spec), name, skill=spec.skill)
    if rate is None:
        return record
    wins, hinted_wins = round(16 * rate), round(16 * (rate + (1 - rate) * rng.random()))
    return record.with_statistics(PlayStatistics(16, wins, wins, 16, hinted_wins, hinted_wins))


def _exemplars(rng: random.Random, skill: str) -> tuple[list[tuple[Spec, EnvironmentRecord]], ...]:
    """What a memory shows: up to two programs at the frontier and one that was too easy or hopeless."""
    shown: tuple[list[tuple[Spec, EnvironmentRecord]], ...] = ([], [])
    wanted = rng.choice(((0, 0), (1, 0), (2, 0), (2, 1), (2, 1), (0, 1), (1, 1)))
    while any(len(group) < count for group, count in zip(shown, wanted)):
        spec = draw_spec(rng, skill, rng.sample(DESIGN_WORDS, 5), sizes=EASY if rng.random() < 0.5 else EVEN)
        expected = 1 / (1 + math.exp(0.9 * (spec.difficulty - 3.0) + rng.gauss(0, 0.8)))
        rate = None if rng.random() < 0.15 else expected
        extreme = rate is not None and not 0.15 <= rate <= 0.85
        if len(shown[extreme]) < wanted[extreme]:
            shown[extreme].append((spec, played_record(spec, rate, rng)))
    return shown


def _words(text: str) -> list[str]:
    return [part.strip('.,;:!?()"') for part in text.lower().split()]

"""Programs asked for and admitted: by the policy, by the policy as it was before training, or by another model."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_train.cycle import CycleConfig, Design, DesignerLike, Sample, Sampler, Written
from spade_train.rows import Row
from spade_train.tokens import ChatTokens

if TYPE_CHECKING:
    from spade_envs.designer import DesignPrompt
    from spade_envs.models.base import ChatModel

_SHORT = 200  # characters of a document that is not cut any more


class DesignStage:
    """Asks for programs and lets the designer admit or refuse them.

    Args:
        tokens: renders conversations to ids.
        designer: makes the prompts and judges the replies.
        config: sizes of a cycle.
        author: another model that writes the programs; its rows cannot be trained on. None: whatever is sampled from.
        temperature: of the author.
    """

    def __init__(
        self,
        tokens: ChatTokens,
        designer: DesignerLike,
        config: CycleConfig,
        author: ChatModel | None = None,
        temperature: float = 0.6,
    ) -> None:
        self.designer = designer
        self._tokens, self._config, self._author, self._temperature = tokens, config, author, temperature

    def ask(self, designs: Sequence[Design], rng: random.Random) -> list[tuple[DesignPrompt, list[int]]]:
        """Return the prompts: all programs for one document answer the same one, so that they can be compared."""
        asked = [self._ask_one(design, rng) for design in designs]
        return [pair for pair in asked for _ in range(self._config.designs)]

    def write(
        self, asked: Sequence[tuple[DesignPrompt, list[int]]], sampler: Sampler, seed: int
    ) -> list[tuple[Sample, str, str]]:
        """Return the ids, the text, and the error, if the model failed, of a reply to each prompt."""
        if self._author is None:
            samples = sampler.sample([ids for _, ids in asked], self._config.design_tokens)
            return [(sample, self._tokens.decode(sample.ids, "designer"), "") for sample in samples]
        from spade_envs.models.base import Sampling

        sampling = Sampling(self._config.design_tokens, self._temperature, seed=seed)
        replies = self._author.complete([prompt.messages for prompt, _ in asked], sampling)
        encode = self._tokens.tokenizer.encode
        return [
            (Sample(encode(reply.text, add_special_tokens=False), None), reply.text, reply.error) for reply in replies
        ]

    def admit(
        self, asked: Sequence[tuple[DesignPrompt, list[int]]], replies: Sequence[tuple[Sample, str, str]]
    ) -> list[Written]:
        """Return what becomes of each reply."""
        from spade_envs.designer.attempt import Attempt

        written = []
        for (prompt, ids), (sample, text, error) in zip(asked, replies, strict=True):
            row = Row("designer", prompt.skill, ids)
            row.sampled(sample.ids, sample.logprobs)
            if not sample.ids:
                row.given([self._tokens.eos])  # a row is never empty, and a late one must not change later
            if error:
                written.append(Written(row, Attempt(prompt.skill, "model_error", reason=error, cause="model_error")))
            else:
                written.append(Written(row, self.designer.admit(text, prompt)))
        return written

    def _ask_one(self, design: Design, rng: random.Random) -> tuple[DesignPrompt, list[int]]:
        """Return the prompt, with as much of the document as leaves room for the program; else without exemplars.

        Another model's prompt is as it is: the policy's context does not bound what that model reads.

        Raises:
            ValueError: if not even a short document without exemplars leaves room.
        """
        room = self._config.context_tokens - self._config.design_tokens
        for exemplars in (True, False):
            document = design.document
            while True:
                prompt = self.designer.prompt(document, design.skill, rng, exemplars=exemplars)
                ids = self._tokens.prompt(prompt.messages, "designer")
                if self._author is not None or len(ids) <= room:
                    return prompt, ids
                if len(document.text) < _SHORT:
                    break
                document = dataclasses.replace(document, text=document.text[: len(document.text) // 2])
        raise ValueError(
            f"the designer's prompt has {len(ids)} tokens even with a short document and no exemplars, and {room} fit "
            f"beside a program of {self._config.design_tokens}: raise context_tokens, or lower design_tokens"
        )

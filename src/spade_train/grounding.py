"""What the designer is given: documents, skills, exemplars. Each can be taken away, to see what it is worth."""

from __future__ import annotations

import dataclasses

from spade_envs.corpus import Corpus, Document
from spade_envs.designer.prompts import PromptSet
from spade_train.config import ConfigError, SpadeConfig
from spade_train.curriculum import CorpusLike

NOTHING = "none"
"""As a corpus: every design is asked for without a document."""


class NoCorpus:
    """Documents without text, of which prompts say nothing."""

    name = fingerprint = NOTHING

    def sample(self, seed: int, index: int) -> Document:
        """Return an empty document."""
        return Document(f"{NOTHING}-{index}", "")


def open_corpus(name: str) -> CorpusLike:
    """Open a corpus, or none.

    Raises:
        CorpusError: if there is no such corpus.
    """
    return NoCorpus() if name == NOTHING else Corpus.open(name)


def load_prompts(config: SpadeConfig) -> PromptSet:
    """Load the prompt set with the skills and exemplars that a run uses.

    Raises:
        PromptSetError: if it cannot be read.
        ConfigError: if it has no such skill.
    """
    prompts = PromptSet.load(config.prompts)
    if wanted := [name for part in config.skills.split(",") if (name := part.strip())]:
        for name in wanted:
            if name not in prompts.skills:
                raise ConfigError(
                    f"prompt set {config.prompts!r} has no skill {name!r}; it has {', '.join(prompts.skills)}"
                )
        prompts = dataclasses.replace(prompts, skill_notes={name: prompts.skill_notes[name] for name in wanted})
    if not config.exemplars:
        prompts = dataclasses.replace(prompts, exemplars=0, negatives=0)
    return prompts

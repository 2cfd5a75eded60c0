"""Grounding documents: reading a corpus and drawing from it in a seeded order without repeats."""

from spade_envs.corpus.corpus import Corpus
from spade_envs.corpus.document import TEXT_FIELDS, CorpusError, Document
from spade_envs.corpus.order import permuted
from spade_envs.corpus.words import cut_words

__all__ = ["TEXT_FIELDS", "Corpus", "CorpusError", "Document", "cut_words", "permuted"]

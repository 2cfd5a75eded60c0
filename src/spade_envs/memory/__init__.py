"""Where environments live: an SQLite database with plays and progress, and a rebuildable vector index."""

from .database import StoreError, UnknownRecord
from .embed import Embedder, HashedTokenEmbedder, WordLlamaEmbedder, default_embedder
from .memory import DEFAULT_CAPACITY, Duplicate, Memory, default_home
from .salvage import Salvaged, salvage

__all__ = [
    "DEFAULT_CAPACITY",
    "Duplicate",
    "Embedder",
    "HashedTokenEmbedder",
    "Memory",
    "Salvaged",
    "StoreError",
    "UnknownRecord",
    "WordLlamaEmbedder",
    "default_embedder",
    "default_home",
    "salvage",
]

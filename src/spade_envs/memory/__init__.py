"""Where environments live: an SQLite database with plays and progress, and a rebuildable vector index."""

from .compaction import Compacted
from .database import StoreError, UnknownRecord
from .diversity import vendi_score
from .embed import Embedder, HashedTokenEmbedder, WordLlamaEmbedder, default_embedder
from .memory import DEFAULT_CAPACITY, Memory, default_home
from .resemblance import Duplicate
from .salvage import Salvaged, salvage

__all__ = [
    "DEFAULT_CAPACITY",
    "Compacted",
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
    "vendi_score",
]

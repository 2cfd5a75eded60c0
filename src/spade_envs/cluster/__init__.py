"""The same pipelines on a Ray cluster: models, validators and players as actors, one writer to the memory.

Whoever calls stays the only writer. What comes back does not depend on how many workers there are, nor on which of
them die: Ray starts a lost actor again elsewhere and repeats its unfinished calls.
"""

from .model import ClusterModel
from .players import calibrate_on_cluster
from .validators import ClusterValidator
from .workers import ClusterError, Workers, connect

__all__ = ["ClusterError", "ClusterModel", "ClusterValidator", "Workers", "calibrate_on_cluster", "connect"]

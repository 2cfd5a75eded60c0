"""Fixed pools of environments for training the agent alone: generated ones, and hand-written ones as baselines."""

from spade_train.pool_sources.procedural import ReasoningGymEnv
from spade_train.pool_sources.scorer import Scorer
from spade_train.pool_sources.sources import SOURCES, FixedPool, load_pool
from spade_train.pool_sources.trusted import TrustedProgram, TrustedSandbox

__all__ = ["SOURCES", "FixedPool", "ReasoningGymEnv", "Scorer", "TrustedProgram", "TrustedSandbox", "load_pool"]

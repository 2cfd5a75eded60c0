"""Pools: environments that come from elsewhere and go elsewhere, as files, tables and datasets of the Hub."""

from spade_envs.pools.candidate import Candidate, PoolError
from spade_envs.pools.export import ExportFilter, ExportSummary, export_memory
from spade_envs.pools.importing import Outcome, import_pool
from spade_envs.pools.published import Pool, open_pool

__all__ = [
    "Candidate",
    "ExportFilter",
    "ExportSummary",
    "Outcome",
    "Pool",
    "PoolError",
    "export_memory",
    "import_pool",
    "open_pool",
]

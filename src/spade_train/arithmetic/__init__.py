"""How much memory a training run needs, from a model's ``config.json`` alone: no torch, no weights, no network.

``python -m spade_train.arithmetic MODEL`` prints the table; :func:`estimate` returns it.
"""

from spade_train.arithmetic.estimate import Line, Run, Table, estimate, kv_bytes_per_token, run_of
from spade_train.arithmetic.shapes import ShapeError, adapter_tensors, parameters, read_config, tensors

__all__ = [
    "Line",
    "Run",
    "ShapeError",
    "Table",
    "adapter_tensors",
    "estimate",
    "kv_bytes_per_token",
    "parameters",
    "read_config",
    "run_of",
    "tensors",
]

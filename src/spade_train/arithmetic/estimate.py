"""Memory of one GPU in a training run, phase by phase.

What stands still (weights, adapter, gradients, optimiser) is counted exactly; activations follow
:mod:`spade_train.arithmetic.activations`; what is assumed is a named constant here. A step has two phases, sampling
and update; the peak is what stands still plus the larger of the two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from spade_train.arithmetic.activations import SINGLE, in_flight_bytes, layer_bytes
from spade_train.arithmetic.shapes import (
    ShapeError,
    adapter_tensors,
    head_dim,
    key_value_heads,
    layer_tensors,
    parameters,
    tied,
)

GIB = 1 << 30
LOGIT_ROWS, LOGIT_COLUMNS = 4096, 32_768
"""Tile in which TRL 1.16 projects to the vocabulary (``trl.kernels.chunked_logprob``, ``trl.trainer.utils``)."""
OVERHEAD = int(1.5 * GIB)
"""Assumed: CUDA context, NCCL buffers, kernels' workspaces."""
FRAGMENTATION = 0.1
"""Assumed: share of the moving part that the allocator cannot reuse."""
PREFETCHED = 2
"""Assumed: layers that are whole at once under sharding, the current one and the one fetched ahead."""

Sharding = Literal["none", "fsdp2", "zero3"]
Sampling = Literal["transformers", "vllm-colocate", "vllm-server"]


@dataclass(frozen=True, slots=True)
class Run:
    """What of a run decides its memory."""

    gpus: int = 1  # that train
    gpu_gib: float = 80.0
    sharding: Sharding = "none"
    sampling: Sampling = "transformers"
    rows: int = 1  # per_device_train_batch_size
    context: int = 32_768  # prompt and completion of the longest row
    targets: str = "auto"  # lora_targets
    rank: int = 16
    checkpointing: bool = True
    width: int = 2  # bytes of weights and compute: 2 for bfloat16, 4 for float32
    sampled_rows: int = 16  # sequences in one generate call, for transformers
    vllm_share: float = 0.3  # vllm_gpu_memory_utilization, for vllm-colocate
    vllm_parallel: int = 1  # vllm_tensor_parallel_size, for vllm-colocate
    vllm_sleeps: bool = False  # vllm_enable_sleep_mode: the share is given back during the update

    def __post_init__(self) -> None:
        for name in ("gpus", "rows", "context", "rank", "sampled_rows", "vllm_parallel"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.gpu_gib <= 0 or not 0.0 < self.vllm_share <= 1.0:
            raise ShapeError(
                f"the memory of a GPU must be greater than 0 GiB and the share of vLLM lie in (0, 1], got "
                f"{self.gpu_gib:g} and {self.vllm_share:g}"
            )


class Line(NamedTuple):
    """One part of the memory of a GPU."""

    name: str
    phase: Literal["always", "sampling", "update"]
    bytes: int
    formula: str


@dataclass(frozen=True, slots=True)
class Table:
    """The memory of one GPU."""

    run: Run
    lines: list[Line]
    kv_per_token: int
    vllm_kv: int  # bytes a GPU that a colocated vLLM has left for its KV cache; may be negative
    kv_ways: int  # GPUs over which that cache is divided: at most one for each key-value head
    full_logits: int  # what the update would need if logits were kept whole
    notes: list[str]

    def phase(self, name: str) -> int:
        """Return the bytes of one phase."""
        return sum(line.bytes for line in self.lines if line.phase == name)

    @property
    def peak(self) -> int:
        """Bytes at the worst moment."""
        return self.phase("always") + max(self.phase("sampling"), self.phase("update"))

    @property
    def fits(self) -> bool:
        """Whether the peak fits and a colocated vLLM can hold at least one sequence."""
        return self.peak <= self.run.gpu_gib * GIB and not self.notes

    @property
    def longest_rows(self) -> int:
        """Rows of this context that the KV caches of one colocated vLLM engine hold at once."""
        return max(0, self.vllm_kv) * self.kv_ways // (self.kv_per_token * self.run.context)


def kv_bytes_per_token(config: Mapping[str, Any], width: int = 2) -> int:
    """Return the bytes of keys and values of one token, over all layers."""
    return 2 * int(config["num_hidden_layers"]) * key_value_heads(config) * head_dim(config) * width


def estimate(config: Mapping[str, Any], run: Run) -> Table:
    """Return the memory of one GPU.

    Args:
        config: of :func:`spade_train.arithmetic.read_config`.
        run: the sizes.

    Raises:
        ShapeError: if the adapter's targets are not known for this model.
    """
    shards = run.gpus if run.sharding != "none" else 1
    adapter = sum(tensor.size for tensor in adapter_tensors(config, run.targets, run.rank))
    weights = parameters(config) * run.width
    kept = SINGLE * adapter // shards
    ways = "" if shards == 1 else f" / {shards} GPUs"
    lines = [
        Line("base weights", "always", weights // shards, f"{parameters(config):,} x {run.width} B{ways}"),
        Line("adapter", "always", kept, f"{adapter:,} x {SINGLE} B{ways}"),
        Line("gradients", "always", kept, f"of the adapter, float32{ways}"),
        Line("optimiser", "always", 2 * kept, f"Adam, two moments, float32{ways}"),
        Line("runtime", "always", OVERHEAD, "assumed: context, communication, workspaces"),
    ]
    if shards > 1:
        lines += _gathered(config, run)
    lines += _update(config, run)
    kv = kv_bytes_per_token(config, run.width)
    vllm_kv, kv_ways, notes = 0, min(run.vllm_parallel, key_value_heads(config)), []
    if run.sampling == "vllm-colocate":
        share = int(run.vllm_share * run.gpu_gib * GIB)
        vllm_kv = share - weights // run.vllm_parallel
        name = f"{run.vllm_share:g} of the GPU, of it {weights / run.vllm_parallel / GIB:.1f} GiB weights"
        lines.append(Line("vLLM", "sampling" if run.vllm_sleeps else "always", share, name))
        if vllm_kv < kv * run.context // kv_ways:
            notes.append(
                f"vLLM's share leaves {vllm_kv / GIB:.1f} GiB for its cache, one row of {run.context:,} tokens needs "
                f"{kv * run.context / kv_ways / GIB:.1f}: raise vllm_gpu_memory_utilization or "
                f"vllm_tensor_parallel_size"
            )
    elif run.sampling == "transformers":
        cache = run.sampled_rows * run.context * kv
        lines.append(Line("KV cache", "sampling", cache, f"{run.sampled_rows} rows x {run.context:,} x {kv:,} B"))
        logits = 3 * run.sampled_rows * int(config["vocab_size"]) * SINGLE
        lines.append(Line("next-token logits", "sampling", logits, f"3 copies x {run.sampled_rows} x vocabulary"))
    moving = max(sum(line.bytes for line in lines if line.phase == phase and line.name != "vLLM")
                 for phase in ("sampling", "update"))  # fmt: skip
    lines.append(
        Line("fragmentation", "always", int(FRAGMENTATION * moving), f"assumed: {FRAGMENTATION:.0%} of a phase")
    )
    full = run.rows * run.context * int(config["vocab_size"]) * (run.width + SINGLE)
    return Table(run, lines, kv, vllm_kv, kv_ways, full, notes)


def most_rows(config: Mapping[str, Any], run: Run, limit: int = 256) -> int:
    """Return the largest micro-batch that fits, 0 if none does."""
    fitting = 0
    for rows in range(1, limit + 1):
        if not estimate(config, replace(run, rows=rows)).fits:
            break
        fitting = rows
    return fitting


def _gathered(config: Mapping[str, Any], run: Run) -> list[Line]:
    """Return the parameters that are whole for a moment although they are sharded."""
    layers = range(int(config["num_hidden_layers"]))
    largest = max(sum(tensor.size for tensor in layer_tensors(config, layer)) for layer in layers) * run.width
    matrix = int(config["vocab_size"]) * int(config["hidden_size"]) * run.width
    copies = 1 if tied(config) else 2
    return [
        Line("gathered layers", "always", PREFETCHED * largest, f"assumed: {PREFETCHED} whole layers at once"),
        Line("gathered embeddings", "always", copies * matrix, "embedding and output projection stay whole"),
    ]


def _update(config: Mapping[str, Any], run: Run) -> list[Line]:
    """Return what the backward pass needs for one micro-batch."""
    tokens, hidden, layers = run.rows * run.context, int(config["hidden_size"]), int(config["num_hidden_layers"])
    each = [layer_bytes(config, layer, run.targets, run.rank, run.width) for layer in range(layers)]
    flight = max(in_flight_bytes(config, layer, run.width) for layer in range(layers))
    if run.checkpointing:
        size = tokens * layers * hidden * run.width
        lines = [
            Line("layer inputs", "update", size, f"{layers} x {tokens:,} tokens x {hidden} x {run.width} B"),
            Line("one layer recomputed", "update", tokens * max(each), f"{tokens:,} tokens x {max(each):,} B"),
        ]
    else:
        lines = [Line("activations", "update", tokens * sum(each), f"{tokens:,} tokens x {sum(each):,} B, all layers")]
    tile = LOGIT_ROWS * min(LOGIT_COLUMNS, int(config["vocab_size"])) * run.width
    ends = tokens * hidden * (2 * run.width + 2 * SINGLE)
    return [
        *lines,
        Line("gradients in flight", "update", tokens * flight, f"bound: {tokens:,} tokens x {flight:,} B"),
        Line(
            "last norm and scored states", "update", ends, f"{tokens:,} tokens x {hidden} x (2 x {run.width} + 2 x 4) B"
        ),
        Line("logits, one tile", "update", tile, f"{LOGIT_ROWS} tokens x {LOGIT_COLUMNS:,} of the vocabulary"),
    ]


def run_of(settings: Any, config: Mapping[str, Any], *, gpus: int = 1, gpu_gib: float = 80.0) -> Run:
    """Return what a training configuration says of its memory.

    Args:
        settings: a :class:`spade_train.config.SpadeConfig`.
        config: its model's configuration.
        gpus: processes that train.
        gpu_gib: memory of each.
    """
    plugin = getattr(settings, "deepspeed_plugin", None)
    sharding: Sharding = "none"
    if plugin is not None and getattr(plugin, "zero_stage", 0) == 3:
        sharding = "zero3"
    elif os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true" or getattr(settings, "fsdp", None):
        sharding = "fsdp2"
    sampling: Sampling = "transformers"
    if settings.use_vllm:
        sampling = "vllm-server" if settings.vllm_mode == "server" else "vllm-colocate"
    return Run(
        gpus=gpus,
        gpu_gib=gpu_gib,
        sharding=sharding if gpus > 1 else "none",
        sampling=sampling,
        rows=int(settings.per_device_train_batch_size),
        context=int(settings.context_tokens or config.get("max_position_embeddings", 32_768)),
        targets=settings.lora_targets,
        rank=settings.lora_r,
        checkpointing=bool(settings.gradient_checkpointing),
        width=2 if settings.bf16 else SINGLE,
        sampled_rows=min(int(settings.generation_rows), int(settings.num_generations or settings.generation_rows)),
        vllm_share=float(settings.vllm_gpu_memory_utilization),
        vllm_parallel=int(settings.vllm_tensor_parallel_size),
        vllm_sleeps=bool(settings.vllm_enable_sleep_mode),
    )

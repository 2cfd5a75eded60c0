"""What would make a run fit that does not: single changes that suffice, found by trying them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from spade_train.arithmetic.estimate import Run, estimate

_LEAST_CONTEXT = 1024
_MOST_GPUS = 64


class Remedy(NamedTuple):
    """One change after which the run fits."""

    option: str  # of the command
    setting: str  # of a recipe
    run: Run  # with it


def remedies(config: Mapping[str, Any], run: Run) -> list[Remedy]:
    """Return changes each of which makes ``run`` fit, the mildest first; none if it fits, or if none alone suffices.

    Args:
        config: of :func:`spade_train.arithmetic.read_config`.
        run: the sizes.
    """
    if estimate(config, run).fits:
        return []
    return [remedy for remedy in _largest(config, run) if estimate(config, remedy.run).fits]


def least(run: Run) -> Run:
    """Return ``run`` with one row at a time and checkpointing: what is left when everything mild was done."""
    return replace(run, rows=1, sampled_rows=1, checkpointing=True)


def _largest(config: Mapping[str, Any], run: Run) -> Iterator[Remedy]:
    """Yield each kind of change, in the largest size that fits, else in the smallest there is."""
    if not run.checkpointing:
        yield Remedy("without --no-checkpointing", "gradient_checkpointing: true", replace(run, checkpointing=True))
    if run.sampling == "transformers" and run.sampled_rows > 1:
        count, changed = _fitting(config, run, "sampled_rows", range(run.sampled_rows - 1, 0, -1))
        yield Remedy(f"--sampled-rows {count}", f"generation_rows: {count}", changed)
    if run.rows > 1:
        count, changed = _fitting(config, run, "rows", range(run.rows - 1, 0, -1))
        yield Remedy(f"--rows {count}", f"per_device_train_batch_size: {count}", changed)
    if run.sampling == "transformers" and min(run.rows, run.sampled_rows) > 1:
        option, setting = "--rows 1 --sampled-rows 1", "per_device_train_batch_size and generation_rows: 1"
        yield Remedy(option, setting, replace(run, rows=1, sampled_rows=1))
    if shorter := [run.context >> halved for halved in range(1, 4) if run.context >> halved >= _LEAST_CONTEXT]:
        tokens, changed = _fitting(config, run, "context", shorter)
        yield Remedy(f"--context {tokens}", f"context_tokens: {tokens}", changed)
    if run.sampling == "transformers":
        yield Remedy(
            "--sampling vllm-server", "use_vllm: true, vllm_mode: server", replace(run, sampling="vllm-server")
        )
    if run.sampling == "vllm-colocate":
        if larger := [tenths / 10 for tenths in range(1, 10) if tenths / 10 > run.vllm_share]:
            share, changed = _fitting(config, run, "vllm_share", larger)
            yield Remedy(f"--vllm-share {share}", f"vllm_gpu_memory_utilization: {share}", changed)
        if not run.vllm_sleeps:
            yield Remedy("--vllm-sleeps", "vllm_enable_sleep_mode: true", replace(run, vllm_sleeps=True))
    sharded = run if run.sharding != "none" else replace(run, sharding="fsdp2")
    if more := [1 << power for power in range(1, 7) if run.gpus < 1 << power <= _MOST_GPUS]:
        gpus, changed = _fitting(config, sharded, "gpus", more)
        yield Remedy(f"--gpus {gpus} --sharding {sharded.sharding}", f"{gpus} GPUs with {sharded.sharding}", changed)


def _fitting(config: Mapping[str, Any], run: Run, name: str, values: Any) -> tuple[Any, Run]:
    """Return the first of ``values`` with which the run fits, else the last one."""
    for value in values:
        changed = replace(run, **{name: value})
        if estimate(config, changed).fits:
            break
    return value, changed

"""``python -m spade_train.arithmetic MODEL``: print the memory of one GPU as a Markdown table."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, get_args

from spade_train.arithmetic.estimate import GIB, Run, Sampling, Sharding, Table, estimate, most_rows
from spade_train.arithmetic.remedies import least, remedies
from spade_train.arithmetic.shapes import ShapeError, adapter_tensors, parameters, read_config, shipped


def render(name: str, config: dict[str, Any], table: Table) -> str:
    """Return a table of one GPU as Markdown."""
    run = table.run
    adapter = sum(tensor.size for tensor in adapter_tensors(config, run.targets, run.rank))
    how = {"none": "whole on each GPU", "fsdp2": "FSDP2", "zero3": "ZeRO-3"}[run.sharding]
    lines = [
        f"{name}: {parameters(config):,} parameters, adapter (rank {run.rank}, {run.targets}) {adapter:,}. "
        f"{run.gpus} x {run.gpu_gib:g} GiB, {how}, sampling with {run.sampling}, micro-batch {run.rows} x "
        f"{run.context:,} tokens, checkpointing {'on' if run.checkpointing else 'off'}.",
        "",
        "| part | phase | GiB a GPU | from |",
        "|---|---|---:|---|",
        *(f"| {one.name} | {one.phase} | {one.bytes / GIB:.2f} | {one.formula} |" for one in table.lines),
        f"| **peak** | | **{table.peak / GIB:.1f}** | of {run.gpu_gib:g}: {'fits' if table.fits else 'does not fit'} |",
        "",
        f"KV cache: {table.kv_per_token:,} B a token, {table.kv_per_token * run.context / GIB:.2f} GiB a row of "
        f"{run.context:,} tokens"
        + (
            f"; vLLM has {table.vllm_kv / GIB:.1f} GiB a GPU for it: {table.longest_rows} such rows at once on "
            f"{run.vllm_parallel} GPU(s)."
            if run.sampling == "vllm-colocate"
            else "."
        ),
        f"Logits kept whole (vocabulary of {config['vocab_size']:,}) would need {table.full_logits / GIB:.1f} GiB; TRL "
        "works tile by tile.",
        f"Largest micro-batch of this context that fits: {most_rows(config, run)}.",
        *table.notes,
        *_advice(config, table),
    ]
    return "\n".join(lines)


def _advice(config: dict[str, Any], table: Table) -> list[str]:
    """Return the line that says what would make it fit, if it does not."""
    if table.fits:
        return []
    if found := remedies(config, table.run):
        return [f"To fit{', one of' * (len(found) > 1)}: {'; '.join(one.option for one in found)}."]
    if found := remedies(config, least(table.run)):
        words = f"--rows 1 --sampled-rows 1{' with checkpointing' if not table.run.checkpointing else ''}"
        return [f"To fit: {words}, and one of: {'; '.join(one.option for one in found)}."]
    return ["No single change makes it fit: take a smaller model, or more GPUs and a shorter --context together."]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; defaults are those of :class:`Run`."""
    run = Run()
    result = argparse.ArgumentParser(
        prog="python -m spade_train.arithmetic",
        description="Memory of one GPU in a LoRA training run, from the model's config.json alone.",
        epilog="Exit code 0 if it fits, 1 if not. "
        "Example: python -m spade_train.arithmetic Qwen3-30B-A3B --gpus 8 --sharding fsdp2 --context 32768",
    )
    result.add_argument(
        "model",
        help=f"folder with config.json, that file, a model in the Hub's cache, or one of {', '.join(shipped())}",
    )
    result.add_argument("--gpus", type=int, default=run.gpus, help="GPUs that train")
    result.add_argument("--gpu-gib", type=float, default=run.gpu_gib, help="memory of each")
    result.add_argument("--sharding", choices=get_args(Sharding), default=run.sharding)
    result.add_argument("--sampling", choices=get_args(Sampling), default=run.sampling)
    result.add_argument("--rows", type=int, default=run.rows, help="per_device_train_batch_size")
    result.add_argument(
        "--context", type=int, help=f"tokens of the longest row; by default {run.context}, or all that the model takes"
    )
    result.add_argument("--lora-r", dest="rank", type=int, default=run.rank)
    result.add_argument("--lora-targets", dest="targets", default=run.targets)
    result.add_argument("--no-checkpointing", dest="checkpointing", action="store_false")
    result.add_argument("--width", type=int, choices=(2, 4), default=run.width, help="bytes: 2 bfloat16, 4 float32")
    result.add_argument("--sampled-rows", type=int, default=run.sampled_rows, help="with transformers: rows at once")
    result.add_argument("--vllm-share", type=float, default=run.vllm_share, help="vllm_gpu_memory_utilization")
    result.add_argument("--vllm-parallel", type=int, default=run.vllm_parallel, help="vllm_tensor_parallel_size")
    result.add_argument("--vllm-sleeps", action="store_true", help="vllm_enable_sleep_mode")
    result.add_argument("--json", action="store_true", help="print numbers instead of a table")
    return result


def main(arguments: list[str] | None = None) -> int:
    """Print; return 0 if it fits, 1 if it does not, 2 if the model cannot be read."""
    given = vars(parser().parse_args(arguments))
    name, as_json = given.pop("model"), given.pop("json")
    try:
        config = read_config(name)
        if given["context"] is None:
            given["context"] = min(Run().context, int(config.get("max_position_embeddings") or Run().context))
        table = estimate(config, Run(**given))
    except ShapeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if as_json:
        parts = [{"name": one.name, "phase": one.phase, "bytes": one.bytes} for one in table.lines]
        print(json.dumps({"parts": parts, "peak": table.peak, "fits": table.fits, "kv_per_token": table.kv_per_token}))
    else:
        print(render(name, config, table))
    return 0 if table.fits else 1


if __name__ == "__main__":
    sys.exit(main())

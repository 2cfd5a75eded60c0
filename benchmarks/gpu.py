"""One cycle of training on a GPU: step time, tokens/s, peak memory beside its estimate, share of what is neither.

    python benchmarks/gpu.py                       # Qwen3-30B-A3B, random weights, LoRA, one GPU of 141 GB
    python benchmarks/gpu.py --model Qwen3-4B      # a smaller one
    python benchmarks/gpu.py --tiny                # the same way on CPU with a tiny mixture, under a minute

Nothing is downloaded: the model has the published shapes and random weights, the tokenizer is the embedded one, the
environments are the embedded held-out programs, played as a fixed pool. A random policy says nothing sensible, so
every turn is as long as it may be: the load is the same at every run. The first cycle warms up and is left out.
Sampling is this process's own (slots with a kept cache): vLLM reads weights from a disk, and there are none.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.record import EnvironmentRecord
from spade_train.arithmetic import estimate, parameters, read_config, run_of
from spade_train.arithmetic.estimate import GIB
from spade_train.config import SpadeConfig

TINY = {
    "model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 32,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 3, "num_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 2048, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip


class Clock:
    """Wall-clock seconds by stage; the device is waited for at both ends."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add what happens inside to ``stage``."""
        _wait()
        began = time.perf_counter()
        try:
            yield
        finally:
            _wait()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began


class TimedSampler:
    """A sampler whose own time is counted as generation."""

    def __init__(self, sampler: Any, clock: Clock) -> None:
        self._sampler, self._clock = sampler, clock

    def sample(self, *arguments: Any, **settings: Any) -> Any:
        """Sample."""
        with self._clock("generation"):
            return self._sampler.sample(*arguments, **settings)

    def busy(self, prompts: int) -> bool:
        """Whether there is work."""
        return bool(self._sampler.busy(prompts))

    @contextlib.contextmanager
    def engine(self) -> Iterator[Any]:
        """Give the engine for conversations, timed too."""
        with self._sampler.engine() as engine:
            collect = engine.collect

            def timed(*arguments: Any) -> Any:
                with self._clock("generation"):
                    return collect(*arguments)

            engine.collect = timed
            yield engine


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _peak() -> int:
    """Return the most bytes that tensors took since the last call, and start again."""
    if not torch.cuda.is_available():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    most = torch.cuda.max_memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    return most


def build_policy(config: dict[str, Any], device: str) -> tuple[Any, Any]:
    """Return a model of these shapes with random weights, made on the device, and the embedded tokenizer."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from spade_envs.models.transformers import NANO_FOLDER

    tokenizer = AutoTokenizer.from_pretrained(NANO_FOLDER, padding_side="left")
    shapes = {
        name: value for name, value in config.items() if name not in ("model_type", "torch_dtype", "architectures")
    }
    shapes |= {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    settings = AutoConfig.for_model(config["model_type"], **shapes)
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16)
    return model, tokenizer


def build_pool(folder: Path, programs: int) -> str:
    """Store embedded programs and return the pool's name."""
    from spade_train.evaluation.heldout import load_programs

    with Memory.open(folder, embedder=HashedTokenEmbedder()) as memory:
        for program in load_programs("builtin:nano")[:programs]:
            name = re.findall(r"^class (\w+Env)\b", program.source, re.MULTILINE)[-1]
            memory.add(EnvironmentRecord.create(program.source, name, skill=program.skill or "any"))
    return str(folder)


def measure(arguments: argparse.Namespace, folder: Path) -> list[tuple[str, str]]:
    """Run the cycles and return the rows of the table."""
    from spade_train.recipe import build_trainer

    config = read_config(TINY if arguments.tiny else arguments.model)
    device = "cuda" if torch.cuda.is_available() and not arguments.tiny else "cpu"
    settings = SpadeConfig(
        output_dir=str(folder / "run"), model=arguments.model, mode="fixed_pool",
        pool=build_pool(folder / "pool", arguments.environments), environments=arguments.environments,
        plays=arguments.plays, max_steps=arguments.cycles + 1, max_turns=arguments.turns,
        turn_tokens=arguments.turn_tokens, episode_tokens=arguments.turns * arguments.turn_tokens,
        context_tokens=arguments.context, per_device_train_batch_size=arguments.rows, bf16=True,
        use_cpu=device == "cpu", gradient_checkpointing=True, lora_targets="attention", save_strategy="no",
        report_to="none", disable_tqdm=True, transcripts="off", minimum_isolation="static",
    )  # fmt: skip
    policy = build_policy(config, device)
    clock, peaks, tokens = Clock(), {"sampling": 0, "update": 0}, {"sampled": 0, "trained": 0}
    with build_trainer(settings, policy=policy) as training:
        trainer, rollout = training.trainer, training.session.rollout
        run, step = rollout.run, trainer.training_step
        started = False

        def cycle(plan: Any, sampler: Any, *more: Any) -> Any:
            nonlocal started
            if trainer.state.global_step == 1 and not started:  # the first one was for warming up
                started = True
                clock.seconds.clear()
                peaks.update(sampling=0, update=0)
                tokens.update(sampled=0, trained=0)
            _peak()
            with clock("rollout"):
                result = run(plan, TimedSampler(sampler, clock), *more)
            peaks["sampling"] = max(peaks["sampling"], _peak())
            tokens["sampled"] += sum(row.tokens for row in result.rows)
            tokens["trained"] += sum(len(row.context) for row in result.rows)
            return result

        def training_step(*given: Any, **more: Any) -> Any:
            with clock("step"):
                result = step(*given, **more)
            peaks["update"] = max(peaks["update"], _peak())
            return result

        rollout.run, trainer.training_step = cycle, training_step
        trainer.train()
    cycles, seconds = arguments.cycles, clock.seconds
    update = seconds["step"] - seconds["rollout"]
    outside = seconds["rollout"] - seconds["generation"]
    guess = estimate(config, run_of(settings, config, gpu_gib=arguments.gpu_gib))
    always = guess.phase("always")
    measured = "" if device == "cuda" else " (of the whole process: there is no GPU)"
    name = "tiny" if arguments.tiny else arguments.model
    sampled = tokens["sampled"] / seconds["generation"]
    return [
        ("model", f"{name}, {parameters(config):,} parameters, on {_device(device)}"),
        ("load", f"{arguments.environments} x {arguments.plays} episodes of {arguments.turns} turns, micro-batch "
                 f"{arguments.rows}, context {arguments.context:,}"),
        ("step", f"{seconds['step'] / cycles:.2f} s"),
        ("generation", f"{seconds['generation'] / cycles:.2f} s, {sampled:.0f} tokens/s"),
        ("update", f"{update / cycles:.2f} s, {tokens['trained'] / update:.0f} tokens/s"),
        ("neither", f"{outside / cycles:.3f} s, {outside / seconds['step']:.1%} of the step"),
        ("peak while sampling", f"{peaks['sampling'] / GIB:.1f} GiB{measured}"),
        ("estimated", f"{(always + guess.phase('sampling')) / GIB:.1f} GiB"),
        ("peak of the update", f"{peaks['update'] / GIB:.1f} GiB{measured}"),
        ("estimated", f"{(always + guess.phase('update')) / GIB:.1f} GiB"),
    ]  # fmt: skip


def _device(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", default="Qwen3-30B-A3B", help="a shipped configuration, or a folder with config.json"
    )
    parser.add_argument("--tiny", action="store_true", help="a tiny mixture on CPU: the same way, to see that it runs")
    parser.add_argument("--gpu-gib", type=float, default=139.0)
    parser.add_argument("--cycles", type=int, default=2)
    parser.add_argument("--environments", type=int, default=16)
    parser.add_argument("--plays", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--turn-tokens", type=int, default=512)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--rows", type=int, default=4, help="rows of a micro-batch")
    given = parser.parse_args(arguments)
    if given.tiny:
        small = {"cycles": 1, "environments": 3, "plays": 2, "turns": 2, "turn_tokens": 8, "context": 1024, "rows": 3}
        for name, value in small.items():
            if getattr(given, name) == parser.get_default(name):
                setattr(given, name, value)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(given, Path(folder))
    print("| | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

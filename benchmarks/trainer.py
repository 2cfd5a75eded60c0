"""What a training step spends outside the model, and what it gains when no turn waits for another one.

    python benchmarks/trainer.py [--quick] [--steps N] [--episodes N]

Two tables, both of the embedded nano model on one thread:

1. Where the CPU time of a step goes, by part. The model's share is its forward and backward passes, sampling from
   its logits, and TRL's update; everything else that happens between two updates is ours: sandbox workers included,
   by the kernel's account of all processes. Bar: ours at most 5 %.
2. Episodes of 1 to 20 turns, played over slots and in lock step by the same trainer, environments included: tokens
   per second. Turns end at one id in 16, so their lengths vary as real ones do. Bar: 1.5 times.

Other load on the machine slows both sides of the second table; run it more than once.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from spade_envs.designer.designer import Designer
from spade_envs.play import PlayConfig, PlayTask, start_episodes
from spade_envs.sandbox import Sandbox
from spade_train.config import SpadeConfig
from spade_train.converse import converse
from spade_train.engine import engine_of
from spade_train.engines.draw import Draw
from spade_train.engines.kv import SlotCache
from spade_train.quickstart import TRAINING
from spade_train.recipe import Training, build_trainer
from spade_train.rows import Row
from spade_train.tokens import ChatTokens
from spade_train.trl_adapter import TrlSampler

BARS = {"ours": 0.05, "ratio": 1.5}
_TICK = os.sysconf("SC_CLK_TCK")
_ECHO = '''class EchoEnv(TextEnv):
    """Count the turns; the last one pays."""

    def __init__(self, turns=1):
        self.turns = turns

    def reset(self, seed=None):
        super().reset(seed)
        return "Say anything, %d times." % self.turns, {}

    def step(self, action):
        self.turn += 1
        done = self.turn >= self.turns
        return "Turn %d of %d. You said %d letters." % (self.turn, self.turns, len(action)), 1.0, done, False, {}
'''


def descendants_cpu() -> float:
    """CPU seconds of all processes under this one so far, to a hundredth."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / _TICK
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = usage.ru_utime + usage.ru_stime
    for pid in used:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != os.getpid():
            total += used[pid]
    return total


class Meter:
    """CPU time of this process by part; what runs inside a part of its own is not counted twice."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[list[float]] = []  # CPU time of the parts inside

    def wrap(self, owner: Any, name: str, part: str) -> None:
        """Count what a method of a class or an object uses as ``part``."""
        inner: Callable[..., Any] = getattr(owner, name)

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.part(part):
                return inner(*args, **kwargs)

        measured.__name__ = getattr(inner, "__name__", name)
        setattr(owner, name, measured)

    @contextmanager
    def part(self, part: str) -> Iterator[None]:
        """Count what the context uses as ``part``."""
        began = time.process_time()
        self._open.append([0.0])
        try:
            yield
        finally:
            used = time.process_time() - began
            inside = self._open.pop()[0]
            self.seconds[part] += used - inside
            if self._open:
                self._open[-1][0] += used


def nano_training(folder: str, steps: int, **changes: Any) -> Training:
    """Return the trainer of ``spade quickstart``."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    settings = TRAINING | {"output_dir": folder, "max_steps": steps, "seed": 0, "save_steps": 5} | changes
    return build_trainer(SpadeConfig(**settings))


def overhead(steps: int) -> float:
    """Print where the CPU time of a step goes; return our share."""
    meter = Meter()
    with tempfile.TemporaryDirectory() as folder, nano_training(f"{folder}/run", steps) as training:
        trainer, session = training.trainer, training.session
        meter.wrap(SlotCache, "forward", "model: forward pass of sampling")
        meter.wrap(Draw, "draw", "model: drawing tokens")
        meter.wrap(trainer, "rollout_func", "ours: the rest of the cycle (engine, rows, curriculum)")
        meter.wrap(Designer, "admit", "ours: validating designs")
        meter.wrap(Designer, "prompt", "ours: prompts of the designer")
        for name in ("decode", "observation", "prompt"):
            meter.wrap(ChatTokens, name, "ours: tokenizer")
        meter.wrap(Sandbox, "open", "ours: opening programs")
        meter.wrap(Sandbox, "run_many", "ours: sandbox, this side")
        meter.wrap(type(session.reward), "__call__", "ours: advantages")
        for callback in session.callbacks():
            known = [one for one in trainer.callback_handler.callbacks if type(one) is type(callback)]
            for one in known:
                for event in ("on_step_end", "on_log", "on_save", "on_train_begin", "on_train_end"):
                    meter.wrap(one, event, "ours: memory, metrics, transcripts, checkpoints")
        meter.wrap(trainer, "train", "model: update (TRL, transformers)")
        for twin in (False, True):  # fork servers start once a run, not once a step
            session.sandbox.open(_ECHO, twin=twin).close()
        meter.seconds.clear()
        before = descendants_cpu()
        began = time.perf_counter()
        trainer.train()
        wall = time.perf_counter() - began
        meter.seconds["ours: sandbox workers"] = descendants_cpu() - before
    total = sum(meter.seconds.values())
    ours = sum(value for part, value in meter.seconds.items() if part.startswith("ours"))
    print(f"\n{steps} steps, {total / steps:.2f} s of CPU and {wall / steps:.2f} s each")
    for part, value in sorted(meter.seconds.items(), key=lambda one: -one[1]):
        print(f"  {part:<60} {1000 * value / steps:8.1f} ms  {value / total:6.1%}")
    print(f"  {'ours together':<60} {1000 * ours / steps:8.1f} ms  {ours / total:6.1%}   bar {BARS['ours']:.0%}")
    return ours / total


def rollouts(episodes: int) -> float:
    """Print tokens per second over slots and in lock step; return the ratio."""
    rates: dict[str, float] = {}
    changes = {"context_tokens": 4096}
    with tempfile.TemporaryDirectory() as folder, nano_training(f"{folder}/run", 1, **changes) as training:
        trainer, tokens = training.trainer, training.session.rollout.tokens
        ends = [tokens.eos, *range(7, len(tokens.tokenizer), 16)]
        trainer.generation_config.eos_token_id = trainer.eos_token_ids = ends
        trainer.model_wrapped = trainer.model
        play = PlayConfig(max_turns=20, turn_tokens=64, episode_tokens=4096)
        print(f"\n{episodes} episodes of 1 to 20 turns, up to {play.turn_tokens} tokens each")
        with Sandbox() as sandbox:
            program = sandbox.open(_ECHO)
            for name in ("auto", "lock_step"):
                tasks = [PlayTask(program, seed, arguments={"turns": 1 + 7 * seed % 20}) for seed in range(episodes)]
                started = start_episodes(sandbox, tasks, play)
                pairs = [(one, Row("agent", "e", tokens.prompt(one.messages))) for one in started]
                sampler = TrlSampler(trainer, engine=name)
                began = time.perf_counter()
                with engine_of(sampler) as engine:
                    converse(pairs, engine, tokens, sandbox, 4096)
                seconds = time.perf_counter() - began
                count = sum(row.tokens for _, row in pairs)
                turns = sum(one.turns for one, _ in pairs)
                rates[name] = count / seconds
                print(
                    f"  {name:<10} {count:>7} tokens in {turns} turns  {seconds:7.2f} s  {rates[name]:7.0f} tokens/s"
                    f"  {engine.steps} {'model steps' if name == 'auto' else 'calls'}"
                )
    ratio = rates["auto"] / rates["lock_step"]
    print(f"  independent episodes against lock step: {ratio:.2f} times   bar {BARS['ratio']} times")
    return ratio


def main() -> None:
    """Run the comparison and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute, for continuous integration")
    parser.add_argument("--steps", type=int, default=0, help="training steps of the first table; default 10, quick 3")
    parser.add_argument("--episodes", type=int, default=0, help="of the second table; default 128, quick 32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    share = overhead(options.steps or (3 if options.quick else 10))
    ratio = rollouts(options.episodes or (32 if options.quick else 128))
    met = share <= BARS["ours"], ratio >= BARS["ratio"]
    print(f"\nours {share:.1%} ({'met' if met[0] else 'MISSED'}), ratio {ratio:.2f} ({'met' if met[1] else 'MISSED'})")


if __name__ == "__main__":
    main()

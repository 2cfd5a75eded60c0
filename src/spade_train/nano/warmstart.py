"""Warm start of the embedded nano model: ``python -m spade_train.nano.warmstart [--seed 0] [--out DIR]``.

Supervised training from scratch on freshly drawn samples of both roles (:mod:`spade_train.nano.samples`), a fixed
number of steps on one CPU thread, so the same seed on the same machine gives the same weights. The result is a
folder that ``AutoTokenizer`` and ``AutoModelForCausalLM`` load like any other model.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import spade_envs
from spade_envs.designer.prompts import PromptSet
from spade_train.nano.samples import Sample, SampleMaker
from spade_train.nano.tokenizer import CONTEXT, build_tokenizer
from spade_train.tokens import ChatTokens

FIRST_LESSONS = 0.2
"""Share of the steps in which the player sees short lists and single operations only."""

MODEL_FOLDER = Path(spade_envs.__file__).parent / "models" / "nano"


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Settings of the warm start; the defaults made the weights that come with the package."""

    seed: int = 0
    steps: int = 3400
    designs: int = 8  # designer samples in a step
    episodes: int = 56  # agent samples in a step
    learning_rate: float = 4e-3  # of embeddings and norms (AdamW)
    matrix_rate: float = 0.02  # of the other matrices (Muon)
    hidden: int = 128
    layers: int = 3
    heads: int = 4  # of width 32, with one key-value head
    inner: int = 384

    def __post_init__(self) -> None:
        for name in ("steps", "designs", "episodes", "hidden", "layers", "heads", "inner"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


def build_model(settings: WarmStart, tokenizer: Any) -> Any:
    """Return an untrained ``Qwen3ForCausalLM`` with seeded weights."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(settings.seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden,
        intermediate_size=settings.inner,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        initializer_range=0.05,
        use_sliding_window=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)


def train(settings: WarmStart, *, log_every: int = 100) -> tuple[Any, Any, dict[str, float]]:
    """Train a model from scratch.

    Returns:
        The model, its tokenizer, and what was measured: CPU minutes, last losses of both roles (nats a token).
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    prompts = PromptSet.load("nano")
    tokenizer = build_tokenizer(prompts)
    maker = SampleMaker(prompts, ChatTokens(tokenizer))
    model = build_model(settings, tokenizer)
    model.train()
    optimisers = _optimisers(model, settings)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, settings.steps))
        for optimiser in optimisers
    ]
    rng = random.Random(settings.seed)
    losses = {"designer": math.nan, "agent": math.nan}
    start = time.process_time()
    for step in range(settings.steps):
        groups = _batch(maker, settings, rng, first=step < FIRST_LESSONS * settings.steps)
        learned = sum(sum(sample.learn) for _, group in groups for sample in group)
        for role, group in groups:
            total, count = _loss(model, group, tokenizer.pad_token_id)
            (total / learned).backward()  # type: ignore[no-untyped-call]
            mean = total.item() / count
            losses[role] = mean if math.isnan(losses[role]) else 0.95 * losses[role] + 0.05 * mean
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, schedule in zip(optimisers, schedules):
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
        if log_every and (step + 1) % log_every == 0:
            minutes = (time.process_time() - start) / 60
            print(
                f"step {step + 1}/{settings.steps}  CPU min {minutes:.2f}  "
                f"designer {losses['designer']:.4f}  agent {losses['agent']:.4f}",
                flush=True,
            )
    model.eval()
    return model, tokenizer, {"cpu_minutes": (time.process_time() - start) / 60, **losses}


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write weights in half precision, configuration, tokenizer and generation settings to ``folder``."""
    from transformers import GenerationConfig

    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    weights = {name: weight.half() for name, weight in model.state_dict().items() if name != "lm_head.weight"}  # tied
    model.save_pretrained(folder, state_dict=weights)
    (folder / "model.safetensors").chmod(0o644)
    _edit(folder / "config.json", dtype="float32")  # stored small, computed in single precision
    tokenizer.save_pretrained(folder)
    template = folder / "chat_template.jinja"
    if template.exists():  # keep everything about the tokenizer in one file
        _edit(folder / "tokenizer_config.json", chat_template=template.read_text(encoding="utf-8"))
        template.unlink()


def _optimisers(model: Any, settings: WarmStart) -> list[torch.optim.Optimizer]:
    """Muon (Jordan 2024) for the matrices inside the layers, AdamW for embeddings and norms.

    After 300 steps the player's loss is 1.24 nats a token; with AdamW alone it is 1.42.
    """
    inner = {name: weight for name, weight in model.named_parameters() if weight.ndim == 2 and ".layers." in name}
    outer = [weight for name, weight in model.named_parameters() if name not in inner]
    return [
        torch.optim.Muon(
            list(inner.values()), lr=settings.matrix_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="original"
        ),
        torch.optim.AdamW(outer, lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def _edit(path: Path, **values: Any) -> None:
    """Set top-level values of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _batch(
    maker: SampleMaker, settings: WarmStart, rng: random.Random, *, first: bool
) -> list[tuple[str, list[Sample]]]:
    """One step's samples; the agent's are split by length, to pad less."""
    designs = [maker.designer(rng) for _ in range(settings.designs)]
    episodes = sorted(
        (maker.agent(rng, first=first) for _ in range(settings.episodes)), key=lambda sample: len(sample.ids)
    )
    middle = 3 * len(episodes) // 4
    groups = [("designer", designs), ("agent", episodes[:middle]), ("agent", episodes[middle:])]
    return [(role, group) for role, group in groups if group]


def _loss(model: Any, samples: Sequence[Sample], pad: int) -> tuple[torch.Tensor, int]:
    """Summed cross-entropy of the tokens to learn, and their number.

    Rows are padded on the right; attention is causal, so no position that counts sees padding.
    """
    width = max(len(sample.ids) for sample in samples)
    ids = torch.tensor([sample.ids + [pad] * (width - len(sample.ids)) for sample in samples])
    learn = torch.tensor([sample.learn + [False] * (width - len(sample.learn)) for sample in samples])[:, 1:]
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1][learn]
    logits = model.lm_head(hidden)
    total = torch.nn.functional.cross_entropy(logits, ids[:, 1:][learn], reduction="sum")
    return total, int(learn.sum())


def _rate(step: int, steps: int) -> float:
    """Linear warm-up over 30 steps, then flat, then linear decay to 2 % over the last half."""
    return min(1.0, (step + 1) / 30) * max(0.02, min(1.0, 2 * (1 - step / steps)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and save; see the module's docstring."""
    defaults = WarmStart()
    parser = argparse.ArgumentParser(prog="python -m spade_train.nano.warmstart", description=main.__doc__)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--steps", type=int, default=defaults.steps, help="optimiser steps (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=MODEL_FOLDER, help="folder to write (default: the package's own)")
    options = parser.parse_args(arguments)
    model, tokenizer, measured = train(WarmStart(seed=options.seed, steps=options.steps))
    save(model, tokenizer, options.out)
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{parameters:,} parameters, {measured['cpu_minutes']:.1f} CPU minutes -> {options.out}")


if __name__ == "__main__":
    main()

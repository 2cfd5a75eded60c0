"""``spade quickstart``: the whole loop on the embedded model, and a report of what came of it.

Generate and register environments, show one, evaluate on programs that the designer did not write, train by
self-play, evaluate again, write the report. Everything goes through the code that serves a large model.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_envs.cli.console import err, out, progress, shown
from spade_train.quickstart_report import print_summary, summarise, write_quickstart_report
from spade_train.quiet import quiet_trl
from spade_train.report import Score

if TYPE_CHECKING:
    from spade_envs.episode import Episode
    from spade_envs.memory import Memory
    from spade_envs.models.base import ChatModel
    from spade_envs.play import PlayConfig
    from spade_envs.record import EnvironmentRecord
    from spade_envs.sandbox import Sandbox
    from spade_train.evaluation.heldout import HeldoutProgram

TRAINING: dict[str, Any] = {
    "model": "nano",
    "corpus": "builtin:nano",
    "prompts": "nano",
    "documents": 3,
    "designs": 5,
    "plays": 6,
    "replay_share": 0.5,
    "designer_reward": "blend",
    "invalid_reward": -0.25,
    "designer_weight": 1.5,
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_targets": "all-linear",
    "learning_rate": 2e-3,
    "beta": 0.0,
    "temperature": 1.0,
    "per_device_train_batch_size": 65,
    "save_steps": 10,
    "report_to": "none",
    "disable_tqdm": True,
    "use_cpu": True,
    "threads": 1,
    "bf16": False,
    "gradient_checkpointing": False,
}
"""Settings of the training part; ``examples/recipes/nano_cpu.yaml`` holds the same for ``spade train``."""

HELDOUT_SEEDS = 4
"""Episodes of each held-out program, before and after."""

DESIGNS = 128
"""Designs for the same documents, before and after, whose validity is compared."""


class QuickstartStopped(RuntimeError):
    """A signal ended the training part."""


def run_quickstart(output: Path, *, environments: int, steps: int, seed: int) -> dict[str, Any]:
    """Run the loop in a new folder and return the figures that ``summary.json`` holds.

    Args:
        output: run folder; ``-2``, ``-3``, … is added if it exists.
        environments: how many to generate before training.
        steps: training iterations.
        seed: fixes everything.

    Raises:
        QuickstartStopped: if a signal ended the training part.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the tokenizers library warns at every fork without it
    started = time.monotonic()
    folder = _new_folder(output)
    from transformers.utils import logging as transformers_logging

    from spade_envs.memory import Memory
    from spade_envs.models import load_model
    from spade_envs.sandbox import Sandbox
    from spade_train.evaluation.heldout import BUILTIN, load_programs

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    err.print(f"[bold]1/5 generate[/] {environments} environments with the embedded model")
    programs = load_programs(BUILTIN)
    play = _play_config()
    with Sandbox() as sandbox:
        model = load_model("nano")
        with Memory.open(folder / "memory") as memory:
            generation = _generate(model, memory, sandbox, folder, environments, seed)
            err.print("[bold]2/5 show[/] one of them, and register all with gymnasium")
            example = _example(model, memory, sandbox, play, seed)
        err.print(f"[bold]3/5 evaluate[/] on {len(programs)} held-out programs and {DESIGNS} documents")
        before = _scores(model, programs, sandbox, play, seed)
        model.close()
    err.print(f"[bold]4/5 train[/] {steps} iterations of self-play (designer and agent are one policy, LoRA)")
    metrics = _train(folder, steps, seed)
    err.print("[bold]5/5 evaluate[/] again")
    with Sandbox() as sandbox:
        trained = _trained(folder / "adapter")
        after = _scores(trained, programs, sandbox, play, seed)
        trained.close()
    seconds = time.monotonic() - started
    summary = summarise(folder, generation, before, after, metrics, seconds, seed)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    write_quickstart_report(folder, summary, before, after, metrics, example, seed)
    print_summary(folder, summary)
    return summary


def _new_folder(output: Path) -> Path:
    folder, number = output, 1
    while folder.exists():
        number += 1
        folder = output.with_name(f"{output.name}-{number}")
    folder.mkdir(parents=True)
    return folder


def _play_config() -> PlayConfig:
    from spade_envs.designer.prompts import PromptSet
    from spade_envs.play import PlayConfig

    prompts = PromptSet.load("nano")
    return PlayConfig(system_prompt=prompts.agent_system, hint_template=prompts.hint_template, **prompts.play)


def _generate(
    model: ChatModel, memory: Memory, sandbox: Sandbox, folder: Path, count: int, seed: int
) -> dict[str, Any]:
    from spade_envs.corpus import Corpus
    from spade_envs.designer import Attempt, Designer, PromptSet, generate

    designer = Designer(PromptSet.load("nano"), memory, sandbox, generator=model.name)
    done = 0
    with progress("generate", count) as advance:

        def note(attempt: Attempt) -> None:
            nonlocal done
            done += attempt.status == "admitted"
            advance(done)

        summary = generate(
            model, Corpus.open("builtin:nano"), designer, memory, count=count, seed=seed, run="quickstart-generate",
            log=folder / "attempts.jsonl", on_attempt=note,
        )  # fmt: skip
    return summary.to_dict()


def _example(model: ChatModel, memory: Memory, sandbox: Sandbox, play: PlayConfig, seed: int) -> dict[str, Any]:
    """Make one environment with gymnasium, play it plain and hinted; return what the report shows."""
    import gymnasium

    import spade_envs

    spade_envs.register(memory)
    record, plain, hinted = _telling(model, memory.records(run="quickstart-generate"), sandbox, play, seed)
    env = gymnasium.make(record.env_id)
    observation, _ = env.reset(seed=seed)
    env.close()
    out.print(f"gymnasium.make({record.env_id!r}) says: {shown(observation, 300)}")
    episodes = [
        {"title": title, "messages": _with_end(episode), "return_": episode.return_, "stop": str(episode.stop)}
        for title, episode in (("Played plain", plain), ("Played with the hint", hinted))
    ]
    document = textwrap.shorten(record.document, 120, placeholder=" …")
    words = f"skill {record.skill}, written for the document “{document}”"
    return {"env_id": record.env_id, "words": words, "source": record.source, "episodes": episodes}


def _telling(
    model: ChatModel, records: Sequence[EnvironmentRecord], sandbox: Sandbox, play: PlayConfig, seed: int
) -> tuple[EnvironmentRecord, Episode, Episode]:
    """Return the environment whose hint helped most in one greedy play of each, with its two episodes."""
    from spade_envs.batching import own_hints
    from spade_envs.models.base import Sampling
    from spade_envs.play import PlayTask, play_episodes

    records = sorted(records, key=lambda record: record.id)
    programs = [sandbox.open(record.source) for record in records]
    hints = own_hints(sandbox, [(program, seed) for program in programs])
    tasks = [PlayTask(program, seed) for program in programs]
    tasks += [PlayTask(program, seed, hint) for program, hint in zip(programs, hints)]
    episodes = play_episodes(model, tasks, sandbox, play, Sampling(play.turn_tokens, 0.0, seed=seed))
    for program in programs:
        program.close()
    plain, hinted = episodes[: len(records)], episodes[len(records) :]
    best = max(range(len(records)), key=lambda index: hinted[index].return_ - plain[index].return_)
    return records[best], plain[best], hinted[best]


def _with_end(episode: Episode) -> list[dict[str, str]]:
    messages = [{"role": str(m["role"]), "content": str(m["content"])} for m in episode.messages]
    if episode.steps and messages[-1]["role"] == "assistant":
        messages.append({"role": "environment", "content": episode.steps[-1].observation})
    return messages


def _scores(
    model: ChatModel, programs: Sequence[HeldoutProgram], sandbox: Sandbox, play: PlayConfig, seed: int
) -> dict[str, Score]:
    """Return held-out success by tier, of all ("all"), sampled ("sampled"), and validity of designs ("designs")."""
    from spade_train.evaluation.heldout import evaluate

    greedy = evaluate(model, programs, sandbox, play, seeds=HELDOUT_SEEDS)
    sampled = evaluate(model, programs, sandbox, play, seeds=HELDOUT_SEEDS, temperature=1.0, sampling_seed=seed)
    tiers = Counter(program.tier for program in programs)
    scores = {
        f"tier {tier}": Score(round(rate * tiers[tier] * HELDOUT_SEEDS), tiers[tier] * HELDOUT_SEEDS)
        for tier, rate in sorted(greedy.by_tier.items())
    }
    scores["all"] = Score(round(greedy.success * greedy.episodes), greedy.episodes)
    scores["sampled"] = Score(round(sampled.success * sampled.episodes), sampled.episodes)
    scores["designs"] = _validity(model, sandbox, seed)
    return scores


def _validity(model: ChatModel, sandbox: Sandbox, seed: int) -> Score:
    """Return how many designs for a fixed set of documents are valid, without a memory behind the designer."""
    from spade_envs.corpus import Corpus
    from spade_envs.designer import Designer, PromptSet

    prompts = PromptSet.load("nano")
    designer, corpus = Designer(prompts, None, sandbox, generator=model.name), Corpus.open("builtin:nano")
    asked = [
        designer.prompt(
            corpus.sample(seed + 1, index), prompts.skills[index % len(prompts.skills)], random.Random(index)
        )
        for index in range(DESIGNS)
    ]
    sampling = dataclasses.replace(prompts.designer_sampling, temperature=1.0, seed=seed)
    replies = model.complete([prompt.messages for prompt in asked], sampling)
    valid = [designer.admit(reply.text, prompt).status == "admitted" for reply, prompt in zip(replies, asked)]
    return Score(sum(valid), len(valid))


def _train(folder: Path, steps: int, seed: int) -> list[dict[str, Any]]:
    from spade_train.config import SpadeConfig
    from spade_train.display import show_alarms, training_display
    from spade_train.recipe import run

    config = SpadeConfig(output_dir=str(folder), max_steps=steps, seed=seed, **TRAINING)
    with training_display(steps) as callbacks:
        result = run(config, callbacks=callbacks)
    show_alarms(result.alarms)
    if result.stopped:
        raise QuickstartStopped(
            f"stopped by {result.stopped} after {result.steps} of {steps} training iterations. A quickstart is not "
            f"gone on with: run it again, and it makes a new folder. What there is lies in {folder}"
        )
    return result.metrics


def _trained(adapter: Path) -> ChatModel:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from spade_envs.models.transformers import NANO_FOLDER, TransformersModel

    base = AutoModelForCausalLM.from_pretrained(str(NANO_FOLDER), dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(str(NANO_FOLDER), padding_side="left")
    with quiet_trl():  # peft asks the same
        merged = PeftModel.from_pretrained(base, str(adapter)).merge_and_unload().eval()
    return TransformersModel(merged, tokenizer, name="nano+adapter")

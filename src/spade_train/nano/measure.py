"""What the nano model can do: ``python -m spade_train.nano.measure [--model DIR] [--temperature 1.0]``.

Prints a JSON object: how many of its designs for fresh documents are admitted by the validator and use their
document, and its success on the held-out set by tier and skill, plain and hinted. Everything runs in the sandbox.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from spade_envs.designer import Designer
from spade_envs.designer.prompts import PromptSet
from spade_envs.models.base import ChatModel, Sampling
from spade_envs.play import PlayConfig
from spade_envs.sandbox import Sandbox
from spade_train.evaluation.heldout import BUILTIN, evaluate, load_programs
from spade_train.nano.corpus import write_document
from spade_train.nano.grammar import DESIGN_WORDS


def measure_designs(
    model: ChatModel, sandbox: Sandbox, *, count: int = 96, temperature: float = 1.0, seed: int = 0
) -> dict[str, Any]:
    """Sample one design for each of ``count`` fresh documents, skills in turn, with an empty memory.

    Returns:
        The shares of admitted designs and, among them, of grounded ones (every animal is of the document); the
        causes of the others; the mean length in tokens; how many admitted sources differ.
    """
    prompts = PromptSet.load("nano")
    designer = Designer(prompts, None, sandbox)
    rng = random.Random(f"fresh documents {seed}")
    asked = [
        designer.prompt(write_document(rng, f"fresh-{i}"), prompts.skills[i % len(prompts.skills)], rng)
        for i in range(count)
    ]
    replies = model.complete([prompt.messages for prompt in asked], Sampling(64, temperature, 1.0, seed))
    attempts = [designer.admit(reply.text, prompt) for reply, prompt in zip(replies, asked)]
    admitted = [(a.source, p.document.text) for a, p in zip(attempts, asked) if a.status == "admitted" and p.document]
    return {
        "admitted": len(admitted) / count,
        "grounded": fmean(is_grounded(source, text) for source, text in admitted) if admitted else 0.0,
        "causes": dict(Counter(attempt.cause for attempt in attempts if attempt.status != "admitted")),
        "tokens": fmean(reply.completion_tokens for reply in replies),
        "distinct": len({source for source, _ in admitted}),
    }


def is_grounded(source: str, document: str) -> bool:
    """Whether a nano program names at least one animal, and none that its document lacks."""
    used = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", source)} & set(DESIGN_WORDS)
    return bool(used) and used <= set(re.findall(r"[a-z]+", document.lower()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's docstring."""
    import torch

    from spade_envs.models.load import load_model

    parser = argparse.ArgumentParser(prog="python -m spade_train.nano.measure", description=main.__doc__)
    parser.add_argument("--model", type=Path, help="a folder made by the warm start (default: the package's own)")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--designs", type=int, default=96)
    parser.add_argument("--episodes", type=int, default=4, help="for each held-out program")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    model = load_model(f"hf:{options.model}" if options.model else "nano", batch_size=128)
    prompts, programs = PromptSet.load("nano"), load_programs(BUILTIN)
    config = PlayConfig(system_prompt=prompts.agent_system, hint_template=prompts.hint_template, **prompts.play)
    result: dict[str, Any] = {}
    with Sandbox() as sandbox:
        result["designs"] = measure_designs(model, sandbox, count=options.designs, temperature=options.temperature)
        for name, hinted, temperature in (
            ("plain", False, options.temperature),
            ("hinted", True, options.temperature),
            ("greedy", False, 0.0),
        ):
            groups = {skill: [one for one in programs if one.skill == skill] for skill in prompts.skills}
            played = {
                key: evaluate(
                    model, group, sandbox, config, seeds=options.episodes, temperature=temperature, hinted=hinted
                )
                for key, group in {"all": programs, **groups}.items()
            }
            result[name] = {"by_tier": dict(played["all"].by_tier)}
            result[name] |= {key: round(outcome.success, 3) for key, outcome in played.items()}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

"""Evaluation during training: own seeds, a budget, results on the axis of the metrics, the best adapter kept."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from spade_train.callbacks.checkpoints import wait
from spade_train.callbacks.files import append_lines, keep_steps, write_json
from spade_train.config import ConfigError
from spade_train.evaluation.heldout import evaluate, load_programs, merge
from spade_train.lora.export import save_adapter
from spade_train.trl_adapter import gather

if TYPE_CHECKING:
    from spade_envs.models.base import ChatModel
    from spade_train.evaluation.suite import Suite
    from spade_train.selfplay import SelfPlay

EVALUATIONS_FILE = "evaluations.jsonl"
BEST_FOLDER, BEST_FILE = "best", "best.json"
_BATCH = 32  # questions of a suite that are asked at once


class EvaluationCallback(TrainerCallback):  # type: ignore[misc]
    """Evaluates the policy before the cycles that are due, and after the last one.

    Each rank plays and answers its share. The random state of the training is put back, so a run with evaluation ends
    with the same adapter as one without.
    """

    def __init__(self, session: SelfPlay) -> None:
        config = session.config
        self._session, self._config = session, config
        self._heldout = load_programs(config.heldout) if config.heldout and config.heldout_every else []
        self._suites = [_suite(name, session) for name in config.suites] if config.evaluate_every else []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Drop results that will be measured again."""
        if args.process_index == 0:
            keep_steps(Path(args.output_dir) / EVALUATIONS_FILE, state.global_step - 1)

    def on_step_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Evaluate the policy as it is before this cycle; its metrics get the results."""
        self._session.measured = self._measure(args, state.global_step, objects)

    def on_train_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Evaluate the policy that came out, unless the run was cut short."""
        if state.global_step >= args.max_steps:
            self._measure(args, state.global_step, objects, last=True)
        for suite in self._suites:
            suite.close()

    def _measure(self, args: Any, step: int, objects: Mapping[str, Any], *, last: bool = False) -> dict[str, float]:
        heldout = self._heldout and (last or step % self._config.heldout_every == 0)
        suites = self._suites if self._suites and (last or step % self._config.evaluate_every == 0) else []
        if not heldout and not suites:
            return {}
        from spade_envs.models.transformers import TransformersModel

        policy, tokenizer = objects["model"], objects["processing_class"]
        if not whole(policy):
            raise ConfigError(
                "evaluation during training needs a policy that is whole on each rank; set heldout_every and "
                "evaluate_every to 0 and evaluate checkpoints with spade eval instead"
            )
        started = time.monotonic()
        with undisturbed(policy):
            template = self._session.rollout.tokens.arguments("agent")
            model = TransformersModel(policy, tokenizer, name="policy", template=template)
            found = self._play_heldout(model) if heldout else {}
            for suite in suites:
                found |= self._ask(suite, model)
        seconds = time.monotonic() - started
        if args.process_index == 0:
            line = {"step": step, "seconds": round(seconds, 3), **found}
            append_lines(Path(args.output_dir) / EVALUATIONS_FILE, [line])
        self._keep_best(Path(args.output_dir) / BEST_FOLDER, step, found, policy, tokenizer)
        return {**found, "seconds/evaluate": seconds}

    def _play_heldout(self, model: ChatModel) -> dict[str, float]:
        config, session = self._config, self._session
        mine = self._heldout[config.process_index :: config.world_size]
        play, seeds = session.rollout.play, config.heldout_seeds
        results = [evaluate(model, mine, session.sandbox, play, seeds=seeds)] if mine else []
        result = merge([result for rank in _all_ranks(results) for result in rank])
        return {
            "heldout/success": result.success,
            **{f"heldout/tier_{tier}": rate for tier, rate in result.by_tier.items()},
        }

    def _ask(self, suite: Suite, model: ChatModel) -> dict[str, float]:
        from spade_train.evaluation.runner import plan, unit_seed

        config = self._config
        items = plan(suite.questions(config.evaluate_limit), 1)[config.process_index :: config.world_size]
        scores: list[tuple[str, float]] = []
        for start in range(0, len(items), _BATCH):
            unit = items[start : start + _BATCH]
            answers = suite.answer(unit, model, unit_seed(config.evaluate_seed, suite.name, unit))
            scores += [(answer.group, answer.score) for answer in answers]
        groups: dict[str, list[float]] = {}
        for group, score in [pair for rank in _all_ranks(scores) for pair in rank]:
            groups.setdefault(group, []).append(score)
        means = {group: sum(given) / len(given) for group, given in sorted(groups.items())}
        name = f"eval/{_plain(suite.name)}"
        columns = {f"{name}/{_plain(group)}": mean for group, mean in means.items() if len(means) > 1}
        return {name: sum(means.values()) / max(1, len(means)), **columns}

    def _keep_best(self, folder: Path, step: int, found: Mapping[str, float], policy: Any, tokenizer: Any) -> None:
        metric = self._config.best_metric
        if not metric or not found:
            return
        if metric not in found:
            if self._config.heldout_every and self._config.evaluate_every:  # the other one may be due later
                return
            raise ConfigError(f"best_metric {metric!r} is not measured; there are {', '.join(sorted(found))}")
        try:
            best = json.loads((folder / BEST_FILE).read_text(encoding="utf-8"))
            before = float(best["value"]) if best["metric"] == metric else None
        except (OSError, ValueError, KeyError):
            before = None
        wait()  # every rank has read
        if before is not None and found[metric] <= before:
            return
        first = self._config.process_index == 0
        save_adapter(policy, folder, write=first)
        if first:
            tokenizer.save_pretrained(folder)
            write_json(folder / BEST_FILE, {"metric": metric, "value": found[metric], "step": step})
        wait()


def whole(policy: Any) -> bool:
    """Whether this rank holds all of every parameter, as under FSDP and ZeRO-3 it does not."""
    return not any(hasattr(weight, "device_mesh") or hasattr(weight, "ds_id") for weight in policy.parameters())


@contextmanager
def undisturbed(policy: Any) -> Iterator[None]:
    """Evaluation mode; every random state, and the mode, are put back."""
    import numpy as np
    import torch

    training, python, numbers = policy.training, random.getstate(), np.random.get_state()
    devices = [policy.device] if policy.device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=devices):
            policy.eval()
            yield
    finally:
        policy.train(training)
        random.setstate(python)
        np.random.set_state(numbers)


def _suite(name: str, session: SelfPlay) -> Suite:
    from spade_train.evaluation.catalogue import SuiteOptions, make_suite

    config = session.config
    isolation: Any = config.minimum_isolation
    try:
        return make_suite(name, SuiteOptions(prompts=config.prompts, isolation=isolation))
    except ValueError as error:
        raise ConfigError(f"evaluate_suites: {error}") from error


def _all_ranks(value: Any) -> list[Any]:
    from accelerate import PartialState

    return gather(PartialState(), value)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")

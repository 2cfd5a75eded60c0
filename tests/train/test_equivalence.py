"""One real run, recomputed by independent code: advantages, ratios, loss and gradient of every step.

What the run saved of each step (rows as JSON, adapter weights before the step) goes into plain torch: one row at a
time, without padding, with the formulas written out. Nothing of the package computes what is expected.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any

import pytest
import torch
from tinyrun import tiny_training
from transformers import TrainerCallback

CAP = 1.1
K, STEPS = 2, 4


class _Spy(TrainerCallback):  # type: ignore[misc]
    """Keeps each step's gradient, unclipped, before the optimizer takes it."""

    def __init__(self, saved: list[dict[str, Any]]) -> None:
        self._saved = saved

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Copy the gradient."""
        self._saved[-1]["gradient"] = {
            name: weight.grad.detach().clone() for name, weight in model.named_parameters() if weight.grad is not None
        }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Train four steps in windows of two and return what was saved of each, and the policy."""
    saved: list[dict[str, Any]] = []
    output = tmp_path_factory.mktemp("equivalence") / "run"
    changes = {"documents": 2, "regenerate_every": K, "off_policy_cap": CAP, "max_grad_norm": 1e9}
    with tiny_training(output, STEPS, **changes) as training:
        trainer, session = training.trainer, training.session
        trainer.add_callback(_Spy(saved))
        rollout_func, step = trainer.rollout_func, trainer.training_step

        def before(prompts: Any, inner: Any) -> Any:
            weights = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
            saved.append({"weights": weights, "losses": []})
            return rollout_func(prompts, inner)

        def after(model: Any, inputs: Any, items: Any = None) -> Any:
            loss = step(model, inputs, items)
            saved[-1]["losses"].append(float(loss))
            saved[-1]["rows"] = json.loads(json.dumps([row.to_dict() for row in session.batch]))
            return loss

        trainer.rollout_func, trainer.training_step = before, after
        trainer.train()
        metrics = [line for line in trainer.state.log_history if "loss" in line]
        return {"steps": saved, "model": trainer.model, "metrics": metrics, "temperature": trainer.temperature}


def _logprobs(model: Any, weights: dict[str, torch.Tensor], row: dict[str, Any], temperature: float) -> torch.Tensor:
    """Score one row's completion with a plain forward pass of its own."""
    ids = torch.tensor([row["prompt_ids"] + row["completion_ids"]])
    logits = torch.func.functional_call(model, weights, (), {"input_ids": ids}).logits[0]
    first = len(row["prompt_ids"])
    every = torch.log_softmax(logits[first - 1 : -1] / temperature, dim=-1)
    return every[torch.arange(len(row["completion_ids"])), ids[0, first:]]


def _expected_advantages(rows: list[dict[str, Any]]) -> list[float]:
    """The paper's advantages: agent (r - mean) / (std + eps) per environment, designer r - mean per skill, weighted."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row["reward"] is not None:
            groups[row["role"], row["group"]].append(index)
    counts = {role: sum(len(ids) for key, ids in groups.items() if key[0] == role) for role in ("designer", "agent")}
    weights = {"designer": 1.0, "agent": 1.0}
    if all(counts.values()):
        ratio = counts["agent"] / counts["designer"] * K
        weights = {"designer": min(50.0, ratio), "agent": 1.0} if ratio >= 1 else {"designer": 1.0, "agent": 1 / ratio}
    result = [0.0] * len(rows)
    for (role, _), members in groups.items():
        rewards = torch.tensor([rows[index]["reward"] for index in members], dtype=torch.float64)
        centred = rewards - rewards.mean()
        if role == "agent":
            centred = centred / (rewards.std(correction=0) + 1e-4)
        for index, value in zip(members, centred.tolist()):
            result[index] = weights[role] * value
    return result


def test_the_run_has_what_is_to_be_checked(run: Any) -> None:
    ages = [{row["age"] for row in step["rows"] if row["role"] == "designer"} for step in run["steps"]]
    assert ages == [set(), set(), {2}, {1}]  # the first window two updates late, the last one in the last rollout
    for step in run["steps"][2:]:
        values = [row["advantage"] for row in step["rows"] if row["role"] == "designer"]
        assert any(value != 0.0 for value in values)
    for step in run["steps"]:
        assert any(row["advantage"] for row in step["rows"] if row["role"] == "agent")
        assert any(0 in row["mask"] for row in step["rows"] if row["role"] == "agent")


def test_advantages(run: Any) -> None:
    for step in run["steps"]:
        found = [row["advantage"] for row in step["rows"]]
        assert found == pytest.approx(_expected_advantages(step["rows"]), abs=1e-6)


def test_sampling_log_probabilities_are_those_of_the_policy_that_sampled(run: Any) -> None:
    for late, sampled in ((2, 0), (3, 2)):
        for row in run["steps"][late]["rows"]:
            if row["role"] == "designer":
                with torch.no_grad():
                    then = _logprobs(run["model"], run["steps"][sampled]["weights"], row, run["temperature"])
                assert row["logprobs"] == pytest.approx((then * torch.tensor(row["mask"])).tolist(), abs=1e-4)


def test_ratios_are_the_formula(run: Any) -> None:
    truncated = moved = 0
    for late, sampled in ((2, 0), (3, 2)):
        ratios: list[float] = []
        for row in run["steps"][late]["rows"]:
            if row["role"] != "designer":
                assert not row["ratio"]
                continue
            with torch.no_grad():
                now, then = (
                    _logprobs(run["model"], run["steps"][at]["weights"], row, run["temperature"]).tolist()
                    for at in (late, sampled)
                )
            expected = [min(math.exp(a - b), CAP) if m else 1.0 for a, b, m in zip(now, then, row["mask"])]
            assert row["ratio"] == pytest.approx(expected, rel=1e-3)
            ratios += [value for value, m in zip(row["ratio"], row["mask"]) if m]
        line = run["metrics"][late]
        assert line["off_policy/ratio_mean"] == pytest.approx(sum(ratios) / len(ratios), rel=1e-4)
        assert line["off_policy/ratio_max"] == pytest.approx(max(ratios), rel=1e-4)
        share = sum(value >= CAP for value in ratios) / len(ratios)
        assert line["off_policy/truncated_share"] == pytest.approx(share)
        truncated += sum(value >= CAP for value in ratios)
        moved += sum(abs(value - 1) > 1e-3 for value in ratios)
    assert truncated > 0
    assert moved > truncated


def test_loss_and_gradient_of_every_step(run: Any) -> None:
    model = run["model"]
    for step in run["steps"]:
        weights = {name: value.clone().requires_grad_("lora" in name) for name, value in step["weights"].items()}
        rows = step["rows"]
        tokens = sum(sum(row["mask"]) for row in rows)
        loss = torch.zeros(())
        for row, advantage in zip(rows, _expected_advantages(rows)):
            if advantage == 0.0:
                continue
            values = _logprobs(model, weights, row, run["temperature"])
            # the policy's ratio to itself is 1, so nothing is clipped, but its gradient is that of the log-probability
            policy = torch.exp(values - values.detach())
            ratio = torch.tensor(row["ratio"] or [1.0] * len(row["mask"]))
            loss = loss - (policy * ratio * advantage * torch.tensor(row["mask"])).sum()
        loss = loss / tokens
        loss.backward()
        assert sum(step["losses"]) == pytest.approx(float(loss.detach()), abs=2e-5)
        assert set(step["gradient"]) == {name for name in weights if "lora" in name}
        for name, gradient in step["gradient"].items():
            expected = weights[name].grad
            assert expected is not None
            scale = float(expected.abs().max()) + 1e-6
            assert float((gradient - expected).abs().max()) < 2e-3 * scale, name

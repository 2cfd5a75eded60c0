"""Which roles are trained, who writes programs, how hints are paid."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest
from doubles import Documents, HashDesigner, ScriptedSampler

from spade_envs.corpus import Document
from spade_envs.models.base import Completion, Conversation, Message, Sampling
from spade_envs.play import PlayConfig
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox
from spade_train.adapter_off import AdapterOffSampler
from spade_train.config import ConfigError, SpadeConfig
from spade_train.cycle import CycleConfig, Design, Plan
from spade_train.rewards import Pay, Penalties
from spade_train.rollout import Rollout
from spade_train.tokens import ChatTokens

PLAY = PlayConfig(max_turns=3, turn_tokens=6, episode_tokens=64, system_prompt="Play.")
PLAN = Plan(7, tuple(Design(Documents().sample(0, index), f"skill{index}") for index in range(2)))


def _rollout(sandbox: Sandbox, tokens: ChatTokens, writer: Any = None, author: Any = None, **changes: Any) -> Rollout:
    sizes: dict[str, Any] = {"designs": 3, "plays": 4, "places": 8, "slots": 60, "design_tokens": 8}
    config = CycleConfig(**(sizes | {"context_tokens": 1000} | changes))
    return Rollout(tokens, HashDesigner(), sandbox, PLAY, config, writer, author=author)


def _talker(tokens: ChatTokens) -> ScriptedSampler:
    rng = random.Random(0)

    def reply(index: int, ids: list[int]) -> list[int]:
        said = tokens.tokenizer.encode(f"{rng.choice('etaoin')} {rng.randrange(1000)}", add_special_tokens=False)
        return [*said, tokens.eos]

    return ScriptedSampler(reply)


class _Hints:
    """Takes every hint but those that end in an even digit."""

    def messages(self, record: EnvironmentRecord) -> list[Message]:
        return [{"role": "user", "content": f"Hint for {record.name}"}]

    def judged(self, record: EnvironmentRecord, text: str) -> EnvironmentRecord:
        return dataclasses.replace(record, hint="" if text[-1] in "02468" else text)


@pytest.mark.parametrize("trained", [{"designer"}, {"agent"}, {"hint", "agent"}, {"designer", "hint", "agent"}])
def test_only_trained_roles_become_rows(sandbox: Sandbox, tokens: ChatTokens, trained: set[str]) -> None:
    rollout = _rollout(sandbox, tokens, _Hints(), trained=frozenset(trained))
    cycle = rollout.run(PLAN, _talker(tokens))
    assert {row.role for row in cycle.rows} == trained | {"pad"}
    assert len(cycle.written) == 6
    assert all(one.row.reward is not None for one in cycle.written)
    assert all(len(one.plain) == 4 for one in cycle.played)


def test_a_hint_earns_the_regret_of_its_plays(sandbox: Sandbox, tokens: ChatTokens) -> None:
    pay = Pay(penalties=Penalties(invalid=-0.3))
    rollout = _rollout(sandbox, tokens, _Hints(), pay=pay, trained=frozenset({"hint"}))
    cycle = rollout.run(PLAN, _talker(tokens))
    assert len(cycle.hints) == len(cycle.played) > 1
    refused = 0
    for one in cycle.hints:
        assert one.row.group == one.played.record.skill  # one hint each: compared within the skill
        if one.played.hinted:
            difference = fmean(one.played.returns(hinted=True)) - fmean(one.played.returns(hinted=False))
            assert one.row.reward == pytest.approx(difference)
        else:
            refused += 1
            assert one.row.reward == -0.3
    assert 0 < refused < len(cycle.hints)


def test_several_hints_share_the_hinted_plays_and_are_compared_within_their_environment(
    sandbox: Sandbox, tokens: ChatTokens
) -> None:
    rollout = _rollout(sandbox, tokens, _Hints(), hints=3, trained=frozenset({"hint"}))
    cycle = rollout.run(PLAN, _talker(tokens))
    assert len(cycle.hints) == 3 * len(cycle.played)
    for played in cycle.played:
        mine = [one for one in cycle.hints if one.played is played]
        assert {one.row.group for one in mine} == {played.record.id}
        used = [seed for one in mine for seed in one.seeds]
        if not played.hinted:
            assert not used
            continue
        assert sorted(used) == [0, 1, 2, 3]
        assert [e.task.seed for e in played.hinted] == played.seeds
        for one in mine:
            if one.seeds:
                hinted, plain = ([side[seed].return_ for seed in one.seeds] for side in (played.hinted, played.plain))
                assert one.row.reward == pytest.approx(fmean(hinted) - fmean(plain))
                said = tokens.decode(one.row.completion_ids)
                assert {played.hinted[seed].task.hint for seed in one.seeds} == {said}


@pytest.mark.parametrize("trained", [{"agent"}, {"hint", "agent"}])
def test_hints_that_are_trained_are_sampled_at_the_temperature_of_the_update(
    sandbox: Sandbox, tokens: ChatTokens, trained: set[str]
) -> None:
    sampler = _talker(tokens)
    _rollout(sandbox, tokens, _Hints(), trained=frozenset(trained), hint_temperature=0.3).run(PLAN, sampler)
    assert (0.3 in sampler.temperatures) == ("hint" not in trained)


def test_no_hint_is_asked_for_a_program_that_leaves_no_room_for_it(sandbox: Sandbox, tokens: ChatTokens) -> None:
    class Long(_Hints):
        def messages(self, record: EnvironmentRecord) -> list[Message]:
            long = " long" * 3000 if record.name == first else ""
            return [{"role": "user", "content": f"Hint for {record.name}{long}"}]

    first = _rollout(sandbox, tokens, _Hints()).run(PLAN, _talker(tokens)).played[0].record.name
    sampler = _talker(tokens)
    cycle = _rollout(sandbox, tokens, Long(), trained=frozenset({"hint"}), hint_tokens=32).run(PLAN, sampler)
    assert first not in {one.played.record.name for one in cycle.hints}
    assert len(cycle.hints) >= 1
    assert not any(one.hinted for one in cycle.played if one.record.name == first)


class _Author:
    """Writes programs instead of the policy; the second call of each batch fails."""

    name = "author"

    def __init__(self) -> None:
        self.samplings: list[Sampling] = []

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        self.samplings.append(sampling)
        return [
            Completion("", error="503") if index == 1 else Completion(f"program {index} {sampling.seed}")
            for index in range(len(conversations))
        ]

    def close(self) -> None: ...


def test_another_model_writes_the_programs(sandbox: Sandbox, tokens: ChatTokens) -> None:
    author, sampler = _Author(), _talker(tokens)
    cycle = _rollout(sandbox, tokens, author=author, trained=frozenset({"agent"})).run(PLAN, sampler)
    assert author.samplings == [Sampling(8, 0.6, seed=7)]
    assert [str(one.attempt.status) for one in cycle.written].count("model_error") == 1
    assert cycle.written[1].attempt.reason == "503"
    assert cycle.written[0].attempt.raw == "program 0 7"
    assert sampler.calls[0] == 2 * 4 * len(cycle.played)  # the policy only plays, plain and hinted
    assert {row.role for row in cycle.rows} == {"agent", "pad"}


def test_the_text_of_another_model_is_judged_as_it_came(sandbox: Sandbox) -> None:
    """Neither the policy's special tokens, nor a thought that its template begins, nor its context touch it."""
    from tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer("qwen3_5_think_training.jinja")
    tokens = ChatTokens(tokenizer)
    assert tokens.decode(tokenizer.encode("x"), "designer") == "<think>\nx"

    class Author(_Author):
        def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
            return [Completion(f"x = '<|im_end|>' {index}") for index in range(len(conversations))]

    long = Plan(7, tuple(Design(Document(str(index), "many words " * 2000), "skill") for index in range(2)))
    rollout = _rollout(sandbox, tokens, author=Author(), trained=frozenset({"agent"}))
    cycle = rollout.run(long, _talker(tokens))
    assert [one.attempt.raw for one in cycle.written] == [f"x = '<|im_end|>' {index}" for index in range(6)]
    assert all(len(one.row.prompt_ids) > 1000 for one in cycle.written)


def test_programs_are_sampled_with_the_adapter_off(sandbox: Sandbox, tokens: ChatTokens) -> None:
    off: list[bool] = []

    class _Policy:
        def disable_adapter(self) -> Any:
            import contextlib

            @contextlib.contextmanager
            def without() -> Iterator[None]:
                off.append(True)
                yield
                off.append(False)

            return without()

    trainer = SimpleNamespace(
        use_vllm=False, model=_Policy(), accelerator=SimpleNamespace(unwrap_model=lambda one: one)
    )
    inner = _talker(tokens)
    said: list[bool] = []
    reply = inner._reply
    inner._reply = lambda index, ids: said.append(bool(off and off[-1])) or reply(index, ids)  # type: ignore[func-returns-value]
    rollout = _rollout(sandbox, tokens, trained=frozenset({"agent"}))
    rollout.run(PLAN, inner, AdapterOffSampler(trainer, inner))
    assert said[:6] == [True] * 6
    assert not any(said[6:])


BASE: dict[str, Any] = {"max_steps": 2, "use_cpu": True, "bf16": False, "report_to": "none"}
SIZES: dict[str, Any] = {"documents": 2, "designs": 3, "plays": 4, "replay_share": 0.25}


@pytest.mark.parametrize(
    ("changes", "rows", "trained"),
    [
        ({}, 6 + 8 * 4, {"designer", "agent"}),
        ({"train_designer": False}, 8 * 4, {"agent"}),
        ({"train_agent": False}, 6, {"designer"}),
        ({"train_hints": True}, 6 + 6 + 8 * 4, {"designer", "hint", "agent"}),
        ({"train_hints": True, "hints": 2}, 6 + 12 + 8 * 4, {"designer", "hint", "agent"}),
        ({"regenerate_every": 4}, 6 + 8 * 4, {"designer", "agent"}),
    ],
)
def test_slots_follow_the_trained_roles(tmp_path: Any, changes: dict[str, Any], rows: int, trained: set[str]) -> None:
    config = SpadeConfig(output_dir=str(tmp_path), **(BASE | SIZES | changes))
    assert (config.rows_needed, config.trained) == (rows, trained)
    assert config.late == (config.regenerate_every > 1)


def test_several_ranks_keep_an_unused_row(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("config", "settings.cycle"):
        monkeypatch.setattr(f"spade_train.{module}.launched_ranks", lambda: 2)
    assert SpadeConfig(output_dir=str(tmp_path), **(BASE | SIZES)).rows_needed == 39
    assert SpadeConfig(output_dir=str(tmp_path), train_designer=False, **(BASE | SIZES)).rows_needed == 32
    # one program a document will do: each of the two active skills has two, over both ranks
    assert SpadeConfig(output_dir=str(tmp_path), **(BASE | SIZES | {"designs": 1, "active_skills": 2})).written == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train_designer": False, "train_agent": False}, "nothing is trained"),
        ({"designer_model": "openai:x"}, "train_designer must be false"),
        ({"train_designer": False, "use_vllm": True, "lora_sync": "merge"}, "adapter off"),
        ({"mode": "fixed_pool", "pool": "p", "train_agent": False}, "train_agent must be true"),
        ({"mode": "fixed_pool", "pool": "p", "regenerate_every": 4}, "regenerate_every must be 1"),
        ({"designer_reward": "micro_lp"}, "regenerate_every of at least 2"),
        ({"hints": 5}, "must not exceed plays"),
        ({"designs": 1}, "of all ranks at least twice active_skills"),
        ({"easy_share": 1.5}, "easy_share"),
        ({"plateau_low": 0.7}, "plateau_low"),
        ({"plateau_ramp": 0.0}, "plateau_ramp"),
        ({"slow_rate": 0.99}, "slow_rate"),
        ({"off_policy_cap": 0.0}, "off_policy_cap"),
        ({"retire_mastered": 0.05}, "retire_mastered"),
    ],
)
def test_contradictions_are_refused(tmp_path: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SpadeConfig(output_dir=str(tmp_path), **(BASE | SIZES | changes))


def test_pay_and_rules_take_the_settings(tmp_path: Any) -> None:
    changes = {"designer_reward": "plateau", "plateau_low": 0.3, "timeout_reward": -1.0, "stagnant_plays": 0}
    config = SpadeConfig(output_dir=str(tmp_path), **(BASE | changes))
    assert config.pay == Pay("plateau", Penalties(timeout=-1.0), band=(0.3, 0.6))
    assert config.retirement_rules.stagnant_plays == 0
    assert SpadeConfig(output_dir=str(tmp_path), **BASE).pay == Pay()

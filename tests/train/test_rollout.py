"""One cycle without a trainer: rows, masks, budgets, hints, replays, errors."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from doubles import BROKEN, Documents, HashDesigner, ScriptedSampler, record

from spade_envs.corpus import Document
from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.models.base import Message
from spade_envs.play import PlayConfig, StopReason
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox
from spade_train.cycle import Cycle, CycleConfig, Design, Plan
from spade_train.metrics import cycle_metrics
from spade_train.rewards import Pay, Penalties, win_rate
from spade_train.rollout import Rollout
from spade_train.tokens import ChatTokens

PLAY = PlayConfig(max_turns=3, turn_tokens=6, episode_tokens=64, system_prompt="Play.")


def _config(**changes: Any) -> CycleConfig:
    defaults: dict[str, Any] = {"designs": 3, "plays": 4, "places": 8, "slots": 60, "design_tokens": 8}
    return CycleConfig(**(defaults | {"context_tokens": 1000} | changes))


def _plan(documents: int = 2, **fields: Any) -> Plan:
    return Plan(7, tuple(Design(Documents().sample(0, i), f"skill{i % 2}") for i in range(documents)), **fields)


def _talker(tokens: ChatTokens, *, closed: bool = True) -> ScriptedSampler:
    """Says one random letter of 'etaoin' and, if ``closed``, ends the turn."""
    rng = random.Random(0)

    def reply(index: int, ids: list[int]) -> list[int]:
        said = tokens.tokenizer.encode(f"{rng.choice('etaoin')} {rng.randrange(1000)}", add_special_tokens=False)
        return [*said, tokens.eos] if closed else [*said, *said, *said, *said]

    return ScriptedSampler(reply)


def _run(sandbox: Sandbox, tokens: ChatTokens, sampler: ScriptedSampler, plan: Plan, **changes: Any) -> Cycle:
    return Rollout(tokens, HashDesigner(), sandbox, PLAY, _config(**changes)).run(plan, sampler)


def test_rows_fill_the_slots_with_both_roles(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycle = _run(sandbox, tokens, _talker(tokens), _plan())
    roles = [row.role for row in cycle.rows]
    assert len(roles) == 60
    assert roles[:6] == ["designer"] * 6
    assert roles.count("agent") == 4 * len(cycle.played)
    assert all(len(row.mask) == len(row.completion_ids) > 0 for row in cycle.rows)
    assert all(row.tokens == 0 and row.reward is None for row in cycle.rows if row.role == "pad")
    assert {row.group for row in cycle.rows if row.role == "designer"} == {"skill0", "skill1"}
    for one in cycle.played:
        assert len(one.plain) == len(one.hinted) == 4
        assert [e.task.seed for e in one.plain] == [e.task.seed for e in one.hinted] == one.seeds
        assert all((e.task.hint or "").startswith("the secret is") for e in one.hinted)
        assert all(e.task.hint is None for e in one.plain)


def test_sampled_ids_reach_the_row_unchanged(sandbox: Sandbox, tokens: ChatTokens) -> None:
    rng = random.Random(1)
    said: list[list[int]] = []

    def reply(index: int, ids: list[int]) -> list[int]:
        said.append([rng.randrange(5, len(tokens.tokenizer)) for _ in range(4)])
        return said[-1]

    cycle = _run(sandbox, tokens, ScriptedSampler(reply), _plan())
    sampled = {tuple(turn) for turn in said}
    for row in cycle.rows:
        turns: list[list[int]] = []
        before = 0
        for token, mask in zip(row.completion_ids, row.mask):
            if mask and not before:
                turns.append([])
            if mask:
                turns[-1].append(token)
            before = mask
        assert all(tuple(turn) in sampled for turn in turns)
        assert row.tokens == sum(map(len, turns))


def test_cut_turn_gets_a_masked_end_of_turn(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycle = _run(sandbox, tokens, _talker(tokens, closed=False), _plan())
    long = [row for row in cycle.rows if row.role == "agent" and 0 in row.mask]
    assert long
    for row in long:
        end = row.mask.index(0)
        assert end == PLAY.turn_tokens
        assert row.completion_ids[end] == tokens.eos
        assert tokens.eos not in row.completion_ids[:end]
        assert row.mask[-1] == 1


def test_context_limit_stops_before_a_dangling_observation(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycle = _run(sandbox, tokens, _talker(tokens, closed=False), _plan(), context_tokens=60)
    stops = {episode.stop for one in cycle.played for episode in one.plain}
    assert StopReason.CONTEXT_LIMIT in stops
    assert all(len(row.prompt_ids) + len(row.completion_ids) <= 60 for row in cycle.rows if row.role == "agent")
    assert all(row.mask[-1] == 1 for row in cycle.rows if row.role == "agent")


def test_long_document_is_cut_until_the_program_fits(sandbox: Sandbox, tokens: ChatTokens) -> None:
    plan = Plan(7, (Design(Document("d", "word " * 2000), "skill0"),))
    cycle = _run(sandbox, tokens, _talker(tokens), plan, context_tokens=600)
    lengths = {len(row.prompt_ids) for row in cycle.rows if row.role == "designer"}
    assert len(lengths) == 1
    assert 200 < lengths.pop() <= 592
    with pytest.raises(ValueError, match="raise context_tokens"):
        _run(sandbox, tokens, _talker(tokens), plan, context_tokens=20)


class _Exemplary(HashDesigner):
    """Shows exemplars that are as long as programs of a large model."""

    def prompt(self, document: Document, skill: str, rng: random.Random, *, exemplars: bool = True) -> DesignPrompt:
        text = document.text + " example" * 3000 * exemplars
        return DesignPrompt([{"role": "user", "content": text}], skill, document)


def test_exemplars_that_leave_no_room_for_the_program_are_left_out(sandbox: Sandbox, tokens: ChatTokens) -> None:
    """Exemplars grow with the memory: the run must not end by it, in a cycle at which a resumed one ends again."""
    plan = Plan(7, (Design(Document("d", "word " * 20), "skill0"),))
    cycle = Rollout(tokens, _Exemplary(), sandbox, PLAY, _config(context_tokens=600)).run(plan, _talker(tokens))
    (asked,) = {tuple(row.prompt_ids) for row in cycle.rows if row.role == "designer"}
    text = tokens.tokenizer.decode(list(asked))
    assert text.count("word") == 20
    assert "example" not in text


def test_same_plan_same_rows(sandbox: Sandbox, tokens: ChatTokens) -> None:
    first, second = (_run(sandbox, tokens, _talker(tokens), _plan()) for _ in range(2))
    assert first.rows == second.rows


def test_idle_rank_keeps_calling_a_collective_backend(sandbox: Sandbox, tokens: ChatTokens) -> None:
    sampler = _talker(tokens)
    sampler._force = 9
    _run(sandbox, tokens, sampler, _plan())
    assert len(sampler.calls) == 9
    assert sampler.calls[-1] == 0


def test_replays_fill_free_places_and_are_not_hinted(sandbox: Sandbox, tokens: ChatTokens) -> None:
    replays = tuple(record(index) for index in range(20, 30))
    cycle = _run(sandbox, tokens, _talker(tokens), _plan(replays=replays, reserved=2))
    old = [one for one in cycle.played if not one.fresh]
    assert len(cycle.played) == 8
    assert len(old) >= 2
    assert all(one.plain and not one.hinted for one in old)
    only = Rollout(tokens, None, sandbox, PLAY, _config(hinted=False)).run(Plan(3, (), replays[:4], 4), _talker(tokens))
    assert [row.role for row in only.rows[:16]] == ["agent"] * 16
    assert not only.written


def test_equal_programs_are_played_once_and_share_their_reward(sandbox: Sandbox, tokens: ChatTokens) -> None:
    said = tokens.tokenizer.encode("twin", add_special_tokens=False)
    sampler = ScriptedSampler(lambda index, ids: [*said, tokens.eos])
    cycle = _run(sandbox, tokens, sampler, _plan(1), pay=Pay("solve_variance"), hinted=False)
    assert len(cycle.played) == 1
    assert [one.outcome.copies for one in cycle.written] == [3, 3, 3]
    rate = win_rate(cycle.played[0].returns(hinted=False))
    assert [one.row.reward for one in cycle.written] == pytest.approx([4 * rate * (1 - rate) / 3] * 3)
    assert cycle_metrics(cycle)["design/duplicate"] == pytest.approx(2 / 3)


class _Fixed(HashDesigner):
    """Admits one given program."""

    def __init__(self, source: str, name: str) -> None:
        super().__init__()
        self._record = EnvironmentRecord.create(source, name, skill="skill0")

    def admit(self, text: str, prompt: DesignPrompt) -> Attempt:
        return Attempt(prompt.skill, "admitted", raw=text, source=self._record.source, record=self._record)


def test_program_that_fails_in_play_teaches_the_agent_nothing(sandbox: Sandbox, tokens: ChatTokens) -> None:
    source = BROKEN.format(name="X", letters="e", turns=2)
    said = tokens.tokenizer.encode("e", add_special_tokens=False)
    rollout = Rollout(
        tokens, _Fixed(source, "LetterXEnv"), sandbox, PLAY, _config(pay=Pay(penalties=Penalties(invalid=-0.1)))
    )
    cycle = rollout.run(_plan(1), ScriptedSampler(lambda index, ids: [*said, tokens.eos]))
    assert all(row.reward is None for row in cycle.rows if row.role == "agent")
    assert all(one.row.reward == -0.1 and one.outcome.status == "failed" for one in cycle.written)
    assert cycle_metrics(cycle)["stop/program_error"] == 4


def test_program_that_hangs_costs_the_designer(tokens: ChatTokens) -> None:
    from spade_envs.sandbox import Limits

    source = record(1).source.replace("        self.turn += 1\n", "        while True: pass\n")
    limits = Limits(soft_seconds=0.1, hard_seconds=0.5, quarantine_after=1)
    with Sandbox(limits, minimum_isolation="static") as strict:
        rollout = Rollout(tokens, _Fixed(source, "LetterBEnv"), strict, PLAY, _config(plays=2))
        cycle = rollout.run(_plan(1), _talker(tokens))
    assert all(one.row.reward == -0.5 for one in cycle.written)


def test_metrics(sandbox: Sandbox, tokens: ChatTokens) -> None:
    cycle = _run(sandbox, tokens, _talker(tokens), _plan())
    metrics = cycle_metrics(cycle)
    plain = [row for row in cycle.rows if row.role == "agent"]
    assert metrics["tokens/agent"] == sum(row.tokens for row in plain)
    assert metrics["tokens/designer"] == sum(one.row.tokens for one in cycle.written)
    assert sum(value for name, value in metrics.items() if name.startswith("stop/")) == len(plain)
    assert 0.0 <= metrics["environment/learnable"] <= 1.0
    assert metrics["environment/regret"] == pytest.approx(
        metrics["environment/hinted_return"] - metrics["environment/plain_return"]
    )


class _Hints:
    """Asks for hints with the program's name, and drops those for one program."""

    def __init__(self, dropped: str) -> None:
        self.dropped = dropped

    def messages(self, record: EnvironmentRecord) -> list[Message]:
        return [{"role": "user", "content": f"Hint for {record.name}"}]

    def judged(self, record: EnvironmentRecord, text: str) -> EnvironmentRecord:
        return dataclasses.replace(record, hint="" if record.name == self.dropped else text)


def test_policy_writes_hints_in_one_call_and_dropped_ones_cost_the_hinted_plays(
    sandbox: Sandbox, tokens: ChatTokens
) -> None:
    whole = _run(sandbox, tokens, _talker(tokens), _plan())
    names = [one.record.name for one in whole.played]
    assert len(names) > 1
    sampler = _talker(tokens)
    hints: Any = _Hints(names[0])
    cycle = Rollout(tokens, HashDesigner(), sandbox, PLAY, _config(), hints).run(_plan(), sampler)
    assert sampler.calls[:2] == [6, len(names)]
    assert sampler.temperatures[:3] == [None, 0.3, None]
    for one in cycle.played:
        assert len(one.hinted) == (0 if one.record.name == names[0] else 4)
        assert all(episode.task.hint == one.record.hint for episode in one.hinted)
    dropped = next(one for one in cycle.written if one.played and one.played.record.name == names[0])
    assert dropped.outcome.hinted == dropped.outcome.plain


def test_logprobs_are_zero_on_environment_tokens(sandbox: Sandbox, tokens: ChatTokens) -> None:
    sampler = _talker(tokens)
    sampler._logprobs = True
    cycle = _run(sandbox, tokens, sampler, _plan())
    for row in cycle.rows:
        assert len(row.logprobs) == len(row.mask)
        assert all((value != 0.0) == bool(mask) for value, mask in zip(row.logprobs, row.mask))

"""Fixed pools: memories, exported and foreign pools, procedural tasks, registered environments."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from doubles import ScriptedSampler, program, record
from reasoning_gym.dataset import ProceduralDataset

from spade_envs.memory import Memory
from spade_envs.play import PlayConfig, PlayTask, StopReason, advance_episodes, start_episodes
from spade_envs.pools import PoolError, export_memory
from spade_envs.sandbox import Operation, Sandbox, SandboxError
from spade_envs.validation import ValidationConfig, validate
from spade_train.curriculum import PoolCurriculum
from spade_train.cycle import CycleConfig
from spade_train.pool_sources import Scorer, TrustedProgram, load_pool
from spade_train.rollout import Rollout
from spade_train.tokens import ChatTokens
from spade_train.transcripts import cycle_records

COUNTDOWN = "gymnasium:textenvs:textenvs/Countdown-v0"


@dataclass
class PickyConfig:
    """Settings of a task as reasoning-gym has them."""

    seed: int = 0
    size: int = 1


class PickyDataset(ProceduralDataset):
    """Finds a question for odd seeds only."""

    def __init__(self, config: PickyConfig) -> None:
        super().__init__(config, config.seed, config.size)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if self.seed % 2 == 0:
            raise ValueError("none found")
        return {"question": f"{self.seed}?", "answer": str(self.seed), "metadata": {}}


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    made = Scorer()
    yield made
    made.close()


def _memory(folder: Path, count: int = 3) -> None:
    with Memory.open(folder) as memory:
        for index in range(count):
            memory.add(record(index), run="test")


def test_memory_folder(tmp_path: Path) -> None:
    _memory(tmp_path / "memory")
    for spec in (str(tmp_path / "memory"), f"memory:{tmp_path / 'memory'}"):
        assert {one.source for one in load_pool(spec).records} == {program(index) for index in range(3)}


def test_several_memories_and_pools_are_one(tmp_path: Path) -> None:
    for name, indices in (("a", range(3)), ("b", range(2, 5))):
        with Memory.open(tmp_path / name) as memory:
            for index in indices:
                memory.add(record(index), run="test")
    (tmp_path / "c,d.py").write_text(program(7))
    spec = f"{tmp_path / 'a'}, memory:{tmp_path / 'b'},{tmp_path / 'a'}"
    assert [one.source for one in load_pool(spec).records] == [program(index) for index in range(5)]
    assert [one.source for one in load_pool(tmp_path / "c,d.py").records] == [program(7)]
    with pytest.raises(PoolError, match="there is no pool at"):
        load_pool(f"{tmp_path / 'a'},{tmp_path / 'z'}")


@pytest.mark.parametrize("name", ["pool", "pool.parquet"])
def test_exported_pools_keep_their_records(tmp_path: Path, name: str) -> None:
    _memory(tmp_path / "memory")
    with Memory.open(tmp_path / "memory", read_only=True) as memory:
        export_memory(memory, tmp_path / name)
        ids = {one.id for one in memory.records()}
    pool = load_pool(tmp_path / name)
    assert {one.id for one in pool.records} == ids
    assert all(one.skill == "s" for one in pool.records)


def test_foreign_programs_are_read_and_broken_ones_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        {"code": f"```python\n{program(0)}```", "skill": "logical_deduction"},
        {"code": program(1), "sha256": "0" * 64},
        {"code": "x = 1\n"},
        {"code": program(0)},
    ]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (one,) = load_pool(tmp_path / "pool.jsonl").records
    assert (one.source, one.name, one.skill) == (program(0), "LetterAEnv", "Logical Deduction")
    assert "2 programs are not played" in caplog.text
    with Sandbox() as sandbox:
        assert sandbox.open(one.source).info.class_name == "LetterAEnv"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nowhere", "there is no pool"),
        ("reasoning-gym:chain_sun", "did you mean chain_sum"),
        ("reasoning-gym:composite", "no task"),
        ("reasoning-gym:", "holds no environment"),
        ("gymnasium:textenvs:textenvs/Grid-v0", "observations .* are Discrete"),
        ("gymnasium:textenvs/Nothing-v0", "cannot be made"),
    ],
)
def test_what_is_no_pool(spec: str, words: str) -> None:
    import textenvs  # noqa: F401 — registers them

    with pytest.raises(PoolError, match=words):
        load_pool(spec)


def test_registered_environment_plays_like_a_program() -> None:
    pool = load_pool(f"{COUNTDOWN},{COUNTDOWN.partition(':')[2]}")
    (one,) = pool.records  # a name twice is one environment
    assert (one.name, one.max_turns) == ("CountdownEnv", 5)
    with pool.sandbox() as sandbox:
        opened = sandbox.open(one.source)
        assert isinstance(opened, TrustedProgram)
        first, again, other = opened.session(), opened.session(), opened.session(start=4)
        assert first.reset(7) == again.reset(7) != other.reset(7)
        assert set(first.reset(7).info) == {"at"}  # what JSON cannot say is left out
        right = chr(ord(first.reset(7).observation[6]) + 1)
        ahead = first.copy()
        for session in (first, ahead):
            step = session.step(f"I think it is \\boxed{{{right}}}.")
            assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
        illegal = again.step("a long sentence")
        assert not illegal.terminated
        assert "no move" in illegal.observation
        assert first.tools() == []
        assert first.hint() is None
        first.close()
        outcome = opened.run([Operation("step", first.number, "a"), Operation("fly", again.number)])
        assert [str(one.error.kind) for one in outcome if one.error] == ["died", "protocol"]


def test_trusted_and_generated_programs_in_one_batch() -> None:
    pool = load_pool(COUNTDOWN)
    with pool.sandbox() as sandbox:
        programs = [sandbox.open(source) for source in (program(0), pool.records[0].source, program(1))]
        episodes = start_episodes(sandbox, [PlayTask(one, 3) for one in programs], PlayConfig())
        assert [one.observation[:5] for one in episodes] == ["Say a", "After", "Say a"]
        advance_episodes(sandbox, [(one, "z", 1) for one in episodes])
        assert episodes[1].stop is StopReason.PROGRAM_ERROR
        assert episodes[1].error == "raised: KeyError: 'no z here'"
        assert episodes[0].stop is not StopReason.PROGRAM_ERROR


def test_reasoning_gym_questions_follow_the_seed_and_score_themselves() -> None:
    pool = load_pool("reasoning-gym:chain_sum,spell_backward")
    chain, _ = pool.records
    assert (chain.name, chain.skill, chain.max_turns) == ("ChainSumEnv", "arithmetic", 1)
    assert chain.generator.startswith("reasoning-gym 0.")
    with pool.sandbox() as sandbox:
        opened = sandbox.open(chain.source)
        one, same, other = (opened.session() for _ in range(3))
        assert one.reset(5).observation == same.reset(5).observation != other.reset(6).observation
        (answer,) = one.solution() or []
        assert one.step(f"So it is \\boxed{{{answer}}}")[1:3] == (1.0, True)
        assert same.step("no idea").reward < 1.0


def test_a_question_that_is_not_found_is_drawn_by_another_seed() -> None:
    from reasoning_gym.factory import DATASETS, register_dataset

    register_dataset("picky", PickyDataset, PickyConfig)
    try:
        (one,) = load_pool("reasoning-gym:picky").records
        with load_pool("reasoning-gym:picky").sandbox() as sandbox:
            asked = [sandbox.open(one.source).session().reset(seed).observation for seed in (1, 2, 2)]
    finally:
        del DATASETS["picky"]
    assert asked[0] == "1?"
    assert asked[1] == asked[2]
    assert int(asked[1].rstrip("?")) % 2


def test_the_source_of_a_record_is_what_is_played() -> None:
    """Whoever runs the source outside of the sandbox gets the same environment."""
    (one,) = load_pool("reasoning-gym:chain_sum").records
    namespace: dict[str, Any] = {"__name__": "played"}
    exec(one.source, namespace)
    asked, _ = namespace[one.name]().reset(seed=5)
    pool = load_pool("reasoning-gym:chain_sum")
    with pool.sandbox() as sandbox:
        assert sandbox.open(one.source).session().reset(5).observation == asked


def test_every_task_scores_in_the_jail_as_outside_of_it(scorer: Scorer) -> None:
    """What loads late would be missing in the jail, and every score 0."""
    import reasoning_gym

    differing = []
    for task in load_pool("reasoning-gym:all").records:
        name = str(task.meta["trusted"]).partition(":")[2]
        dataset = reasoning_gym.create_dataset(name, seed=11, size=1)
        entry = dataset[0]
        outside = float(dataset.score_answer(str(entry["answer"]), entry))
        if scorer.score(name, {}, entry, str(entry["answer"])) != pytest.approx(outside):
            differing.append(name)
    assert not differing


@pytest.mark.parametrize(
    "answer",
    [
        "[open('{path}', 'w').write('x')]",
        "[__import__('os').system('touch {path}')]",
        "[[c for c in ().__class__.__base__.__subclasses__()]]",
        "[9**9**9**9]",
        "[(lambda f: f(f))(lambda f: f(f))]",
    ],
)
def test_answers_that_are_code_do_nothing_and_earn_nothing(scorer: Scorer, answer: str, tmp_path: Path) -> None:
    """string_insertion hands what looks like a list to eval(); the jail must hold whatever the word list misses."""
    import reasoning_gym

    from spade_train.pool_sources import scorer as module

    path = tmp_path / "written"
    entry = reasoning_gym.create_dataset("string_insertion", seed=1, size=1)[0]
    text = answer.replace("{path}", str(path))
    assert scorer.score("string_insertion", {}, entry, text) == 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CALLS_CODE", module.re.compile(r"(?!)"))
        assert scorer.score("string_insertion", {}, entry, text) < 1.0
    assert not os.path.exists(path)
    assert scorer.score("string_insertion", {}, entry, str(entry["answer"])) == 1.0  # it goes on


def test_a_scorer_that_died_is_replaced(scorer: Scorer) -> None:
    """By the machine's memory running out, say: that is no reason to end the run."""
    entry = {"question": "1 + 1", "answer": "2", "metadata": {}}
    assert scorer.score("chain_sum", {}, entry, "2") == 1.0
    assert scorer._process is not None
    scorer._process.kill()
    scorer._process.wait()
    assert scorer.score("chain_sum", {}, entry, "2") == 1.0


def test_a_scorer_that_cannot_start_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from spade_train.pool_sources import scorer as module

    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(SandboxError, match="does not answer"):
        Scorer().score("chain_sum", {}, {}, "1")


def test_a_cycle_on_procedural_environments(tokenizer: Any) -> None:
    pool = load_pool(f"reasoning-gym:chain_sum,{'spell_backward'}")
    play = PlayConfig(max_turns=2, turn_tokens=8)
    config = CycleConfig(plays=3, hinted=False, places=2, slots=8, context_tokens=4096)
    tokens = ChatTokens(tokenizer)
    reply = [*tokens.tokenizer.encode("12"), tokens.eos]
    plan = PoolCurriculum(pool.records, 2, 0).plan(0, 0, 1, [])
    with pool.sandbox() as sandbox:
        cycle = Rollout(tokens, None, sandbox, play, config).run(plan, ScriptedSampler(lambda *_: reply))
    assert [row.role for row in cycle.rows] == ["agent"] * 6 + ["pad"] * 2
    assert all(row.reward is not None for row in cycle.rows[:6])
    assert not any(one.errors for one in cycle.played)


def _pool_cycle(tokens: ChatTokens, pool: Any, **sizes: int) -> Any:
    """Play one cycle of a pool, every answer the same."""
    config = CycleConfig(
        plays=3, hinted=False, places=sizes["environments"], slots=4 * sizes["environments"], context_tokens=4096
    )
    reply = [*tokens.tokenizer.encode("12"), tokens.eos]
    plan = PoolCurriculum(pool.records, sizes["environments"], 0).plan(0, 0, 1, [])
    with pool.sandbox() as sandbox:
        return Rollout(tokens, None, sandbox, PlayConfig(max_turns=2, turn_tokens=8), config).run(
            plan, ScriptedSampler(lambda *_: reply)
        )


@pytest.mark.parametrize("spec", ["reasoning-gym:chain_sum,spell_backward", COUNTDOWN])
def test_a_group_is_plays_of_one_question(tokens: ChatTokens, spec: str) -> None:
    """Questions of one task differ in difficulty, so plays of different ones would not be compared with each other."""
    cycle = _pool_cycle(tokens, load_pool(spec), environments=5)
    assert len(cycle.played) == 5, "a task has any number of questions"
    rows: dict[str, list[Any]] = {}
    for row in cycle.rows:
        if row.role == "agent":
            rows.setdefault(row.group, []).append(row)
    assert [len(group) for group in rows.values()] == [3] * 5
    for group in rows.values():
        assert len({row.episode.task.seed for row in group}) == 1
        assert len({tuple(row.prompt_ids) for row in group}) == 1
    records = list(cycle_records(cycle, step=1, rank=0, decode=str))
    assert {one["group"] for one in records} == set(rows)


def test_generated_programs_are_compared_over_their_seeds(tokens: ChatTokens, tmp_path: Path) -> None:
    """As published: an environment's plays are its group."""
    _memory(tmp_path / "memory")
    for one in _pool_cycle(tokens, load_pool(tmp_path / "memory"), environments=2).played:
        assert len(set(one.seeds)) == 3
        assert one.group == one.record.id


UNOPENED = {
    "does not load": "raise ValueError('no')\n" + program(6),
    "dies when it loads": "x = 'a' * 10**10\n" + program(7),
    "cannot be made": program(8).replace(
        "    def reset", "    def __init__(self):\n        undefined()\n\n    def reset"
    ),
    "cannot be reset": program(9).replace("super().reset(seed)", "undefined()"),
}


def test_the_places_of_programs_that_cannot_be_opened_go_to_others(
    tokens: ChatTokens, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for index in range(4):
        (tmp_path / f"sound{index}.py").write_text(program(index))
    for name, source in UNOPENED.items():
        (tmp_path / f"{name.replace(' ', '_')}.py").write_text(source)
    pool = load_pool(tmp_path)
    assert len(pool.records) == 8
    cycle = _pool_cycle(tokens, pool, environments=4)
    assert {one.record.source for one in cycle.played} == {program(index) for index in range(4)}
    assert [row.role for row in cycle.rows] == ["agent"] * 12 + ["pad"] * 4
    tried = caplog.text.count("cannot be opened and is left out")
    assert cycle.figures["replay/unopened"] == tried > 0


def test_a_pool_of_which_nothing_can_be_opened_is_said(tokens: ChatTokens, tmp_path: Path) -> None:
    for name, source in UNOPENED.items():
        (tmp_path / f"{name.replace(' ', '_')}.py").write_text(source)
    with pytest.raises(PoolError, match="no environment of the pool can be opened; the last one: Letter"):
        _pool_cycle(tokens, load_pool(tmp_path), environments=2)


def test_the_seed_pool_is_sound() -> None:
    """Every program is admitted and proven; only its hint says the answer, which a model this small needs."""
    pool = load_pool(Path(__file__).parents[2] / "examples" / "seed_pool")
    assert len(pool.records) == 8
    with Sandbox() as sandbox:
        for one in pool.records:
            report = validate(one.source, sandbox=sandbox, config=ValidationConfig(hint_answer="warn"))
            assert report.admitted, (one.name, report.refusals)
            assert report.proven, one.name
            assert sandbox.open(one.source).info.has_hint, one.name


def test_a_pool_is_played_with_its_hints_where_that_is_asked_for(tokenizer: Any, tmp_path: Path) -> None:
    _memory(tmp_path / "memory", 2)
    pool = load_pool(tmp_path / "memory")
    config = CycleConfig(plays=2, hinted=True, places=2, slots=4, context_tokens=4096)
    tokens = ChatTokens(tokenizer)
    plan = PoolCurriculum(pool.records, 2, 0).plan(0, 0, 1, [])
    reply = [*tokens.tokenizer.encode("e"), tokens.eos]
    with pool.sandbox() as sandbox:
        cycle = Rollout(tokens, None, sandbox, PlayConfig(turn_tokens=8), config).run(
            plan, ScriptedSampler(lambda *_: reply)
        )
    assert [row.role for row in cycle.rows] == ["agent"] * 4  # hinted episodes are not trained on
    for one in cycle.played:
        assert len(one.hinted) == len(one.plain) == 2
        assert all("the secret is" in str(episode.messages) for episode in one.hinted)
        assert not any("the secret is" in str(episode.messages) for episode in one.plain)

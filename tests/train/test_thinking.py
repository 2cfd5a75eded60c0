"""Thinking models: switches by role, thoughts that never end, what the programs and the extractor see of them."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import pytest
from doubles import PROGRAM, ScriptedSampler, record
from hypothesis import given
from hypothesis import strategies as st
from tiny import TEMPLATES, tiny_model, tiny_tokenizer
from tinyrun import tiny_config
from transformers import AutoTokenizer

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.models.base import Message, Sampling
from spade_envs.models.transformers import TransformersModel
from spade_envs.play import Episode, PlayConfig, PlayTask, StopReason, advance_episodes, start_episodes
from spade_envs.sandbox import Sandbox
from spade_envs.source_text.extract import extract_program
from spade_train.converse import converse
from spade_train.engine import LockStepEngine
from spade_train.recipe import run
from spade_train.rows import Row
from spade_train.thinking import ThinkTags, find_thought, sampled_turns, thinking_metrics
from spade_train.tokens import ChatTokens, EndOfTurnError, PrefixError, TemplateError, prepare_tokenizer

ASKED: list[Message] = [{"role": "system", "content": "Play."}, {"role": "user", "content": "first"}]
NO_THOUGHT = "<think>\n\n</think>\n\n"
ENDS = {"gemma": "<end_of_turn>", "gemma3": "<end_of_turn>", "llama3": "<|eot_id|>", "llama3_1": "<|eot_id|>",
        "llama3_2": "<|eot_id|>", "deepseek_r1_distill": "<｜end▁of▁sentence｜>"}  # fmt: skip


@pytest.fixture(scope="module")
def plain() -> Any:
    """The tiny tokenizer with the template that Qwen3 models come with."""
    return tiny_tokenizer("qwen3.jinja")


def _tokenizer(plain: Any, template: str) -> Any:
    """Return the tiny tokenizer with another of TRL's templates, and the token that ends turns there."""
    tokenizer = copy.deepcopy(plain)
    tokenizer.chat_template = (TEMPLATES / f"{template}.jinja").read_text()
    tokenizer.bos_token = "<|endoftext|>"
    if template in ENDS:
        tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", ENDS[template]]})
    return tokenizer


@pytest.fixture(scope="module")
def qwen3(plain: Any) -> Any:
    tokenizer = _tokenizer(plain, "qwen3")
    prepare_tokenizer(tokenizer)
    return tokenizer


def _shown(tokenizer: Any, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False))


def test_template_of_the_family_is_taken_and_told(plain: Any, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = _tokenizer(plain, "qwen3")
    with pytest.raises(PrefixError):
        ChatTokens(tokenizer)
    with caplog.at_level(logging.INFO, "spade_train.tokens"):
        prepare_tokenizer(tokenizer)
    assert "training template" in caplog.text
    assert tokenizer.chat_template == (TEMPLATES / "qwen3_training.jinja").read_text()
    ChatTokens(tokenizer)


def test_template_that_is_sound_is_left_alone(plain: Any) -> None:
    for name in ("qwen2_5", "qwen3_instruct_2507", "qwen3_training"):
        tokenizer = _tokenizer(plain, name)
        before = tokenizer.chat_template
        prepare_tokenizer(tokenizer)
        assert (tokenizer.chat_template, tokenizer.eos_token) == (before, "<|im_end|>")


@pytest.mark.parametrize("name", sorted(ENDS))
def test_end_of_turn_of_other_families(plain: Any, name: str) -> None:
    tokenizer = _tokenizer(plain, name)
    with pytest.raises(EndOfTurnError):
        ChatTokens(tokenizer)
    prepare_tokenizer(tokenizer)
    assert tokenizer.eos_token == ENDS[name]
    tokens = ChatTokens(tokenizer)
    prompt = _shown(tokenizer, tokens.prompt(ASKED))
    assert "Play." in prompt
    assert "first" in prompt
    assert tokens.observation("x", closed=False) == [tokens.eos, *tokens.observation("x", closed=True)]


def test_templates_without_a_remedy_are_refused(plain: Any) -> None:
    for name in ("phi3", "gptoss", "glm4moe"):
        with pytest.raises(TemplateError):
            prepare_tokenizer(_tokenizer(plain, name))
    own = _tokenizer(plain, "qwen3")
    own.chat_template += " "
    with pytest.raises(PrefixError, match="get_training_chat_template"):
        prepare_tokenizer(own)


def test_dates_of_a_template_stand_still(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = _tokenizer(plain, "llama3_2")
    prepare_tokenizer(tokenizer)
    assert "Today Date: 26 Jul 2024" in _shown(tokenizer, ChatTokens(tokenizer).prompt(ASKED))
    other = ChatTokens(tokenizer, {"date_string": "1 May 2025"})
    assert "Today Date: 1 May 2025" in _shown(tokenizer, other.prompt(ASKED))


def test_each_role_has_its_switch(qwen3: Any) -> None:
    tokens = ChatTokens(qwen3, None, {"designer": "on", "hint": "default", "agent": "off"})
    ends = {role: _shown(qwen3, tokens.prompt(ASKED, role)) for role in ("designer", "hint", "agent")}
    assert [ends[role].endswith(NO_THOUGHT) for role in ends] == [False, False, True]
    assert _shown(qwen3, tokens.observation("next", closed=True)).endswith(f"<|im_start|>assistant\n{NO_THOUGHT}")
    assert not any(tokens.opened.values())


def test_templates_that_begin_the_thought(plain: Any) -> None:
    tokenizer = _tokenizer(plain, "qwen3_5_think")
    prepare_tokenizer(tokenizer, None, {"designer": "off"})
    tokens = ChatTokens(tokenizer, None, {"designer": "off"})
    assert tokens.opened == {"designer": False, "hint": True, "agent": True}
    said = tokenizer.encode("so\n</think>\n\nleft", add_special_tokens=False)
    assert tokens.decode(said) == "<think>\nso\n</think>\n\nleft"
    assert tokens.decode(said, "designer") == "so\n</think>\n\nleft"


def test_switch_that_a_template_has_not_is_refused(plain: Any) -> None:
    with pytest.raises(TemplateError, match=r"agent_thinking: .*no switch.*enable_thinking"):
        ChatTokens(_tokenizer(plain, "qwen2_5"), None, {"agent": "off"})
    ChatTokens(_tokenizer(plain, "qwen2_5"), None, {"agent": "default"})


def test_settings_read_what_yaml_makes_of_on_and_off(tmp_path: Any) -> None:
    config = tiny_config(tmp_path, 1, agent_thinking=False, designer_thinking=True)
    assert config.thinking == {"designer": "on", "hint": "default", "agent": "off"}


def test_extractor_sees_the_answer_alone(plain: Any) -> None:
    tokenizer = _tokenizer(plain, "qwen3_5_think")
    prepare_tokenizer(tokenizer)
    tokens = ChatTokens(tokenizer)

    def program_in(text: str) -> str:
        return extract_program(tokens.decode(tokenizer.encode(text, add_special_tokens=False), "designer")).source

    draft, final = "class DraftEnv:\n    pass", "class FinalEnv:\n    pass"
    assert program_in(f"First\n```python\n{draft}\n```\n</think>\n\n```python\n{final}\n```") == f"{final}\n"
    assert program_in(f"First\n```python\n{draft}\n```\nand then") == "", "a thought that never ended holds no program"


def _letter_game(sandbox: Sandbox, config: PlayConfig) -> Episode:
    program = sandbox.open(PROGRAM.format(name="A", letters="e", turns=3))
    return start_episodes(sandbox, [PlayTask(program, 0, None, "a")], config)[0]


@pytest.mark.parametrize(
    ("said", "action", "observation"),
    [
        ("<think>is it e?</think>\n\nz", "z", "no"),
        ("<think>e or z?\n</think>\n\ne", "e", "yes"),
        ("<think>surely e, but", "", "no"),
        ("e </think> z", " z", "no"),
        ("no thought, e", "no thought, e", "yes"),
    ],
)
def test_program_gets_the_answer_alone(sandbox: Sandbox, said: str, action: str, observation: str) -> None:
    episode = _letter_game(sandbox, PlayConfig(max_turns=3))
    advance_episodes(sandbox, [(episode, said, 5)])
    assert (episode.steps[0].action, episode.steps[0].observation) == (action, observation)
    assert episode.messages[1]["content"] == said, "the conversation keeps what was said"


def test_endless_thought_is_bounded_counted_and_goes_on(sandbox: Sandbox, qwen3: Any) -> None:
    tokens = ChatTokens(qwen3)
    assert tokens.tags is not None
    start, end = tokens.tags.start, tokens.tags.end
    word = qwen3.encode("e", add_special_tokens=False)
    turns = iter([[start, *word * 30], [start, *word, end, *qwen3.encode("z", add_special_tokens=False), tokens.eos],
                  [start, *word * 30]])  # fmt: skip
    config = PlayConfig(max_turns=9, turn_tokens=10, episode_tokens=25)
    episode = _letter_game(sandbox, config)
    row = Row("agent", "a", tokens.prompt(episode.messages))
    sampler = ScriptedSampler(lambda index, ids: next(turns))
    converse([(episode, row)], LockStepEngine(sampler), tokens, sandbox, 400)
    assert [step.action for step in episode.steps] == ["", "z", ""]
    assert episode.stop in (StopReason.TRUNCATED, StopReason.TERMINATED, StopReason.TOKEN_BUDGET)
    assert episode.tokens == row.tokens == 10 + 5 + 10, "thinking counts in the budget"
    metrics = thinking_metrics([row], tokens.tags, tokens.opened)
    assert metrics == {
        "thinking/agent_share": 1.0,
        "thinking/agent_unfinished": pytest.approx(2 / 3),
        "thinking/agent_tokens": pytest.approx((10 + 3 + 10) / 3),
    }


def test_metrics_are_left_out_where_nobody_thinks() -> None:
    row = Row("agent", "a", [1], [5, 6, 7], [1, 1, 1])
    tags = ThinkTags(90, 91, "<think>")
    assert thinking_metrics([row], tags, {}) == {}
    assert thinking_metrics([row], None, {}) == {}
    assert thinking_metrics([row], tags, {"agent": True})["thinking/agent_unfinished"] == 1.0
    assert thinking_metrics([Row.padding(1, scored=False)], tags, {"pad": False}) == {}


@pytest.mark.parametrize(
    ("ids", "opened", "tokens", "finished"),
    [([8, 1, 9, 2], False, 3, True), ([8, 1, 1], False, 3, False), ([1, 9, 2], True, 2, True), ([1, 1], True, 2, False),
     ([8, 9, 3, 8, 4], False, 5, False), ([8, 9, 3, 8, 9], False, 5, True)],
)  # fmt: skip
def test_where_a_thought_ends(ids: list[int], opened: bool, tokens: int, finished: bool) -> None:
    assert find_thought(ids, ThinkTags(8, 9, "<think>"), opened=opened) == (tokens, finished)


def test_no_thought_is_none() -> None:
    assert find_thought([1, 2], ThinkTags(8, 9, "<think>"), opened=False) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30))
def test_turns_of_a_row_are_its_sampled_runs(pairs: list[tuple[int, bool]]) -> None:
    row = Row("agent", "a", [1], [token for token, _ in pairs], [int(sampled) for _, sampled in pairs])
    turns = list(sampled_turns(row))
    assert [token for turn in turns for token in turn] == [token for token, sampled in pairs if sampled]
    assert all(turns)
    runs = sum(sampled and (index == 0 or not pairs[index - 1][1]) for index, (_, sampled) in enumerate(pairs))
    assert len(turns) == runs


def test_thinking_model_trains_under_its_familys_template(plain: Any, tmp_path: Path) -> None:
    model, tokenizer = tiny_model(plain), _tokenizer(plain, "qwen3_5_think")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    with Memory.open(tmp_path / "pool", embedder=HashedTokenEmbedder()) as memory:
        for index in range(3):
            memory.add(record(index))
    sizes = {"context_tokens": 2000, "turn_tokens": 6, "episode_tokens": 14, "max_turns": 2, "environments": 2}
    config = tiny_config(
        tmp_path / "run", 1, model=str(tmp_path / "model"), mode="fixed_pool", pool=str(tmp_path / "pool"),
        prompts="nano", agent_thinking="on", plays=2, **sizes,
    )  # fmt: skip
    (line,) = run(config).metrics
    assert line["thinking/agent_share"] == 1.0, "every turn begins inside a thought"
    assert line["thinking/agent_unfinished"] > 0.5, "six random tokens end few thoughts"
    assert 0 < line["thinking/agent_tokens"] <= 6
    saved = AutoTokenizer.from_pretrained(tmp_path / "run" / "adapter")
    assert saved.chat_template == (TEMPLATES / "qwen3_5_think_training.jinja").read_text()


def test_other_ways_of_asking_keep_to_the_roles_switch(qwen3: Any) -> None:
    tokens = ChatTokens(qwen3, None, {"agent": "off"})
    model = TransformersModel(tiny_model(qwen3), qwen3, name="policy", template=tokens.arguments("agent"))
    (reply,) = model.complete([ASKED], Sampling(max_tokens=1))
    assert reply.prompt_tokens == len(tokens.prompt(ASKED))
    assert reply.prompt_tokens > len(tokens.prompt(ASKED, "designer"))


def test_thought_that_the_template_began_is_seen_by_every_reader(plain: Any) -> None:
    tokenizer = _tokenizer(plain, "qwen3_5_think")
    (reply,) = TransformersModel(tiny_model(tokenizer), tokenizer, name="m").complete([ASKED], Sampling(max_tokens=3))
    assert reply.text.startswith("<think>\n")
    off = TransformersModel(tiny_model(tokenizer), tokenizer, name="m", template={"enable_thinking": False})
    assert not off.complete([ASKED], Sampling(max_tokens=3))[0].text.startswith("<think>")

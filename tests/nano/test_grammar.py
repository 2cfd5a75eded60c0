"""Programs of the nano grammar in the real sandbox, the held-out set, the corpus."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from spade_envs.corpus import Corpus
from spade_envs.designer.designer import validation_config
from spade_envs.designer.prompts import PromptSet
from spade_envs.sandbox import Sandbox
from spade_envs.validation import validate
from spade_train.evaluation.heldout import BUILTIN, load_programs
from spade_train.nano.corpus import CORPUS_FILE, write_corpus
from spade_train.nano.draws import EASY, EVEN, adopt, draw_spec, vary
from spade_train.nano.grammar import (
    DESIGN_WORDS,
    HELD_OUT_WORDS,
    SKILLS,
    TOPICS,
    Spec,
    reserved,
    source,
    statement,
)
from spade_train.nano.heldout import HELD_OUT_FILE, PER_TIER, draw_held_out, write_held_out
from spade_train.nano.players import Game, Player


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


def draw(count: int, seed: int) -> list[Spec]:
    rng = random.Random(seed)
    return [
        draw_spec(rng, SKILLS[index % len(SKILLS)], rng.sample(DESIGN_WORDS, 5), sizes=rng.choice((EASY, EVEN)))
        for index in range(count)
    ]


def test_random_programs_are_admitted_and_proven(sandbox: Sandbox) -> None:
    config = validation_config(PromptSet.load("nano"), None)
    for spec in draw(60, seed=1):
        report = validate(source(spec), sandbox=sandbox, config=config)
        assert report.admitted, (statement(spec), report.refusals)
        assert report.proven
        assert 10 <= source(spec).count("\n") <= 30


@pytest.mark.parametrize("skill", SKILLS)
def test_game_repeats_the_program_draw_for_draw(sandbox: Sandbox, skill: str) -> None:
    rng = random.Random(skill)
    for seed in range(15):
        spec = draw_spec(rng, skill, rng.sample(DESIGN_WORDS, 5), sizes=EVEN)
        game = Game(spec, seed)
        player = Player(game, rng, hinted=seed % 2 == 0)
        program = sandbox.open(source(spec))
        session = program.session()
        assert session.reset(seed).observation == game.observation
        assert session.hint() == game.hint
        while not game.done:
            assert (session.solution() or [""])[0] == game.answer
            reply = player.reply()
            result = session.step(f" {reply}")
            game.step(reply)
            assert (result.observation, result.terminated) == (game.observation, game.done)
            assert not result.truncated
        assert result.reward == game.return_
        program.close()


def test_hints_carry_at_most_half_of_several_symbols() -> None:
    for index, spec in enumerate(draw(200, seed=2)):
        game = Game(spec, index)
        if game.hint.startswith("It starts with"):
            symbols = len(game.hint.split()) - 3
            assert 1 <= symbols <= spec.answers / 2
        else:
            low, high = re.fullmatch(r"It is from (\d+) to (\d+)", game.hint).groups()  # type: ignore[union-attr]
            assert 2 <= int(high) - int(low) <= 3
            assert int(low) <= int(game.answer) <= int(high)


def test_variations_stay_programs_of_the_grammar(sandbox: Sandbox) -> None:
    rng = random.Random(5)
    config = validation_config(PromptSet.load("nano"), None)
    for spec in draw(20, seed=3):
        topic = rng.choice(TOPICS)
        other = draw_spec(rng, spec.skill, rng.sample(DESIGN_WORDS, 5), topic)
        varied = vary(adopt(spec, other, topic), rng.choice((-1, 0, 1)), rng, topic)
        report = validate(source(varied), sandbox=sandbox, config=config)
        assert report.admitted, (statement(varied), report.refusals)


def test_harder_and_easier_move_the_difficulty() -> None:
    rng = random.Random(7)
    specs = draw(200, seed=4)
    mean = sum(spec.difficulty for spec in specs)
    assert sum(vary(spec, 1, rng).difficulty for spec in specs) > mean
    assert sum(vary(spec, -1, rng).difficulty for spec in specs) < mean


def test_the_held_out_set_is_fixed_valid_and_apart(sandbox: Sandbox) -> None:
    held_out = load_programs(BUILTIN)
    assert Counter(program.tier for program in held_out) == dict.fromkeys((1, 2, 3, 4), PER_TIER)
    assert [program.source for program in held_out] == [source(spec) for _, spec in draw_held_out()]
    assert all(reserved(spec) for _, spec in draw_held_out())
    designed = {word.capitalize() for word in DESIGN_WORDS} | set(DESIGN_WORDS)
    for program in held_out:
        assert not designed & set(re.findall(r"[A-Z]?[a-z]+", program.source))
        assert any(word.capitalize() in program.source for word in HELD_OUT_WORDS)
    config = validation_config(PromptSet.load("nano"), None)
    for program in held_out[::4]:
        report = validate(program.source, sandbox=sandbox, config=config)
        assert report.admitted, (program.id, report.refusals)


def test_data_files_are_what_the_code_writes(tmp_path: Path) -> None:
    write_held_out(tmp_path / "heldout.jsonl")
    write_corpus(tmp_path / "corpus.jsonl")
    assert (tmp_path / "heldout.jsonl").read_bytes() == HELD_OUT_FILE.read_bytes()
    assert (tmp_path / "corpus.jsonl").read_bytes() == CORPUS_FILE.read_bytes()


def test_the_corpus_names_design_words_only() -> None:
    corpus = Corpus.open("builtin:nano")
    assert len(corpus) >= 300
    texts = [document.text for document in corpus]
    assert len(set(texts)) > 0.98 * len(texts)
    for text in texts:
        words = set(re.findall(r"[a-z]+", text.lower()))
        assert len(words & set(DESIGN_WORDS)) >= 4
        assert not words & set(HELD_OUT_WORDS)


def test_the_prompt_reduces_a_document_to_topic_and_words() -> None:
    prompts = PromptSet.load("nano")
    for document in list(Corpus.open("builtin:nano"))[:40]:
        request = str(prompts.designer_messages(document, "numbers")[-1]["content"])
        shown = re.search(r"Words:(.*)", request)
        assert shown is not None
        words = shown[1].split()
        assert set(words) <= set(DESIGN_WORDS)
        assert len(words) >= 4
    assert json.dumps(prompts.skills) == json.dumps(SKILLS)

"""Batches that shrink and a cache that grows in place write what plain generation writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers

from spade_envs.models.batch_generation import ManyEnded, generate_rows, growing_cache
from spade_envs.models.transformers import NANO_FOLDER

PAD = 0


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Pieces as small as these wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(NANO_FOLDER, dtype=torch.float32).eval()


def _rows(lengths: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    generator = torch.Generator().manual_seed(7)
    width = max(lengths)
    prompts = [torch.randint(5, 200, (length,), generator=generator).tolist() for length in lengths]
    return [[PAD] * (width - len(p)) + p for p in prompts], [[0] * (width - len(p)) + [1] * len(p) for p in prompts]


def _plain(model: Any, row: list[int], mask: list[int], new_tokens: int, ends: list[int]) -> list[int]:
    settings = transformers.GenerationConfig(
        max_new_tokens=new_tokens, do_sample=False, eos_token_id=ends, pad_token_id=PAD
    )
    with torch.inference_mode():
        output = model.generate(
            input_ids=torch.tensor([row]), attention_mask=torch.tensor([mask]), generation_config=settings
        )
    return list(output[0, len(row) :].tolist())


def test_shrinking_batches_write_what_each_row_writes_alone(model: Any) -> None:
    rows, mask = _rows([9, 30, 4, 17, 23, 12])
    alone = [_plain(model, row, seen, 150, []) for row, seen in zip(rows, mask)]
    # Ends that come at different times in some rows, and never in others.
    ends = sorted({alone[0][3], alone[1][40], alone[2][90]})
    wanted = [_plain(model, row, seen, 150, ends) for row, seen in zip(rows, mask)]
    batches: list[int] = []
    forward = model.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        batches.append(len(kwargs["input_ids"]))
        return forward(*args, **kwargs)

    model.forward = counted
    try:
        written = generate_rows(model, rows, mask, 150, ends, PAD)
    finally:
        model.forward = forward
    for found, expected in zip(written, wanted):
        assert found[: len(expected)] == expected
    lengths = {len(expected) for expected in wanted}
    assert len(lengths) > 1
    assert len(set(batches)) > 1  # rows left on the way
    assert sum(batches) < len(rows) * len(batches)


def test_a_processor_gets_the_places_of_the_rows_that_go_on(model: Any) -> None:
    rows, mask = _rows([5, 5, 5, 5])
    seen: list[list[int]] = []

    def forced(places: torch.Tensor) -> Any:
        seen.append(places.tolist())

        def process(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            step = ids.shape[1] - 5
            token = torch.where(step >= 3 * places, 2, 50 + places)  # row n ends after 3 n tokens
            return torch.full_like(scores, -1e9).scatter_(1, token.unsqueeze(1), 0.0)

        return process

    written = generate_rows(model, rows, mask, 20, [2], PAD, forced)
    assert [row[: 3 * place + 1] for place, row in enumerate(written)] == [
        [50 + place] * (3 * place) + [2] for place in range(4)
    ]
    assert seen == [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]


def test_each_row_has_its_own_room(model: Any) -> None:
    rows, mask = _rows([9, 30, 4, 17])
    rooms = [60, 5, 70, 33]
    written = generate_rows(model, rows, mask, rooms, [299], PAD)
    assert [len(row) for row in written] == rooms
    assert written == [_plain(model, row, seen, room, [299]) for row, seen, room in zip(rows, mask, rooms)]


def test_a_batch_says_how_far_it_is(model: Any) -> None:
    rows, mask = _rows([5, 3])
    told: list[tuple[int, int, int]] = []
    written = generate_rows(model, rows, mask, 70, [299], PAD, None, lambda *facts: told.append(facts))
    assert told == [(32, 70, 2), (64, 70, 2)]
    assert written == generate_rows(model, rows, mask, 70, [299], PAD)


def test_a_cache_that_does_not_attend_to_everything_is_the_models_own(model: Any) -> None:
    assert growing_cache(model) is not None
    config = transformers.Gemma2Config(
        hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        head_dim=8, vocab_size=300, sliding_window=4,
    )  # fmt: skip
    sliding = transformers.Gemma2ForCausalLM(config).eval()
    assert growing_cache(sliding) is None
    rows, mask = _rows([6, 3])
    written = generate_rows(sliding, rows, mask, 8, [299], PAD)
    assert written[0][:8] == _plain(sliding, rows[0], mask[0], 8, [299])[:8]


def test_rows_stop_when_a_quarter_has_ended() -> None:
    criterion = ManyEnded(torch.tensor([2, 9]), torch.tensor([8, 8, 8, 8, 8]), 1)
    scores = None
    assert not criterion(torch.tensor([[1], [2], [1], [1], [1]]), scores).any()
    assert criterion(torch.tensor([[1], [0], [1], [9], [1]]), scores).all()  # the first is filled up since


def test_learned_positions_are_never_exceeded() -> None:
    config = transformers.GPT2Config(n_positions=40, n_embd=16, n_layer=1, n_head=2, vocab_size=300, n_inner=16)
    model = transformers.GPT2LMHeadModel(config).eval()
    rows, mask = _rows([35, 5, 12])
    assert [len(row) for row in generate_rows(model, rows, mask, [5, 35, 28], [999], PAD)] == [5, 35, 28]

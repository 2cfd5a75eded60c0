"""Batches of long replies by ``generate`` of ``transformers``: the cache grows in place, rows that ended leave it.

By itself it copies the whole cache for every token, and carries rows that ended on to the end of the longest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_ROOM = 64  # tokens, beside a quarter more than there are
_TELL = 32  # tokens between two words on how far a batch is


def generate_rows(
    model: Any,
    rows: list[list[int]],
    mask: list[list[int]],
    new_tokens: int | Sequence[int],
    end_ids: Sequence[int],
    pad_id: int,
    processor: Callable[[torch.Tensor], Any] | None = None,
    on_tokens: Callable[[int, int, int], None] | None = None,
) -> list[list[int]]:
    """Return the new tokens of each row, with whatever came after its end.

    Args:
        model: a causal language model on its device.
        rows: prompts of equal length, padded on the left.
        mask: 0 where a row is padded, 1 elsewhere.
        new_tokens: most of them for each row, or for each of the rows: a short prompt has more room than a long one.
        end_ids: tokens that end a row.
        pad_id: what ended rows are filled with.
        processor: makes the processor of the scores of those rows whose places it gets; None: the likeliest token.
        on_tokens: told now and then how many tokens there are, how many there may be, and how many rows go on.
    """
    import torch
    import transformers

    device, width, cache = model.device, len(rows[0]), growing_cache(model)
    ids, attended = torch.tensor(rows, device=device), torch.tensor(mask, device=device)
    ends = torch.tensor(list(end_ids), device=device)
    rooms = torch.tensor([new_tokens] * len(rows) if isinstance(new_tokens, int) else list(new_tokens), device=device)
    if cache is None:  # no row can leave on the way: all keep to the least
        rooms = rooms.min().expand(len(rows))
    most = int(rooms.max())
    places = torch.arange(len(rows), device=device)  # of the rows that go on
    written: dict[int, list[int]] = {}
    while True:
        settings = transformers.GenerationConfig(
            max_new_tokens=int(rooms[places].max()) - (ids.shape[1] - width),
            do_sample=False,
            num_beams=1,
            eos_token_id=list(end_ids),
            pad_token_id=pad_id,
            use_cache=True,
        )
        criteria = transformers.StoppingCriteriaList()
        if cache is not None and len(places) > 1:
            criteria.append(ManyEnded(ends, rooms[places], width))
        if on_tokens is not None:
            criteria.append(_Told(on_tokens, width, most))
        with torch.inference_mode(), _generation_settings(model, settings):
            ids = model.generate(
                input_ids=ids,
                attention_mask=attended,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList([processor(places)] if processor else []),
                stopping_criteria=criteria,
                **({} if cache is None else {"cache": cache}),
            )
        ended = torch.isin(ids[:, width:], ends).any(dim=1) | (ids.shape[1] - width >= rooms[places])
        if cache is None or ids.shape[1] - width >= most:
            ended = torch.ones_like(ended)
        written.update(zip(places[ended].tolist(), ids[ended, width:].tolist()))
        if len(written) == len(rows):
            return [written[place][:room] for place, room in enumerate(rooms.tolist())]
        going = (~ended).nonzero().squeeze(1)
        ids, places = ids[going], places[going]
        attended = torch.cat([attended[going], attended.new_ones(len(going), ids.shape[1] - attended.shape[1])], dim=1)
        if cache is not None:
            with torch.inference_mode():
                cache.batch_select_indices(going)


@contextlib.contextmanager
def _generation_settings(model: Any, settings: Any) -> Iterator[None]:
    """Put ``settings`` in the place of the model's own for one call, and in that of a model that PEFT wraps.

    ``generate`` fills gaps from the model's own settings (repetition penalty, suppressed tokens, …), but sampling is
    the caller's alone.
    """
    models = [model, model.get_base_model()] if hasattr(model, "get_base_model") else [model]
    own = [one.generation_config for one in models]
    try:
        for one in models:
            one.generation_config = settings
        yield
    finally:
        for one, before in zip(models, own):
            one.generation_config = before


def growing_cache(model: Any) -> Any | None:
    """Return an empty cache for ``model``, None if some of its layers do not attend to everything: it makes its own."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if not base._supports_default_dynamic_cache():
        return None
    cache = DynamicCache(config=base.config)
    if not cache.layers or any(type(layer) is not DynamicLayer for layer in cache.layers):
        return None
    cache.layers = [_layer_class()() for _ in cache.layers]
    return cache


@lru_cache(maxsize=1)
def _layer_class() -> Any:
    from transformers.cache_utils import DynamicLayer

    class GrowingLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values are the filled part of larger tensors."""

        keys: Any
        values: Any

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Append states of (batch, heads, new tokens, size); returns all of them."""
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
                self._room: list[torch.Tensor] = []
            before = self.get_seq_length()
            after = before + key_states.shape[-2]
            if not self._room or self._room[0].shape[-2] < after:
                size = after + after // 4 + _ROOM
                states: list[Any] = [self.keys, self.values]
                news = (key_states, value_states)
                self._room = [_larger(old, new, before, size) for old, new in zip(states, news)]
            for room, new in zip(self._room, (key_states, value_states)):
                room[:, :, before:after] = new
            self.keys, self.values = (room[:, :, :after] for room in self._room)
            return self.keys, self.values

        def batch_select_indices(self, indices: torch.Tensor) -> None:
            """Keep these rows."""
            if self.get_seq_length() > 0:
                length = self.get_seq_length()
                self._room = [room[indices] for room in self._room]
                self.keys, self.values = (room[:, :, :length] for room in self._room)

    return GrowingLayer


def _larger(old: torch.Tensor, new: torch.Tensor, filled: int, size: int) -> torch.Tensor:
    room = new.new_empty((*new.shape[:2], size, new.shape[-1]))
    if filled:
        room[:, :, :filled] = old
    return room


class ManyEnded:
    """A stopping criterion: all rows stop once a quarter of them, or the room of one, has ended; these are left out."""

    def __init__(self, ends: torch.Tensor, rooms: torch.Tensor, width: int) -> None:
        self._ended = rooms.new_zeros(len(rooms)).bool()
        self._ends, self._rooms, self._width = ends, rooms, width

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Map (batch, length) ids so far to (batch,) whether to stop."""
        import torch

        self._ended |= torch.isin(input_ids[:, -1], self._ends)
        full = (input_ids.shape[1] - self._width >= self._rooms).any()
        return (full | (4 * self._ended.sum() >= len(self._ended))).expand(len(self._ended))


class _Told:
    """A stopping criterion that stops nothing and says how far a batch is."""

    def __init__(self, on_tokens: Callable[[int, int, int], None], width: int, most: int) -> None:
        self._on_tokens, self._width, self._most = on_tokens, width, most

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Map (batch, length) ids so far to (batch,) whether to stop."""
        written = input_ids.shape[1] - self._width
        if not written % _TELL:
            self._on_tokens(written, self._most, len(input_ids))
        return input_ids.new_zeros(len(input_ids)).bool()

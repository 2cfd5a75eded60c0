"""A key-value cache of slots: each conversation has a row of its own, and its token at position p stands in column p.

So rows of different lengths need no padding between their tokens, a row can be continued, cut back or copied at any
column, and one comparison of columns with positions is the whole attention mask.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

_GRAIN = 64  # columns by which the cache grows, at least


class UnsupportedModelError(ValueError):
    """The model cannot be driven with a cache of slots; the message says why."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]  # transformers is not typed
    """Keys and values of one layer, (slots, columns + 1, heads, width); the last column takes what is not kept."""

    def __init__(self, owner: SlotCache) -> None:
        super().__init__()
        self._owner = owner

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate; keys and values may differ in width."""
        shape = (self._owner.rows, self._owner.capacity + 1)
        self.keys = key_states.new_zeros(*shape, key_states.shape[1], key_states.shape[3])
        self.values = value_states.new_zeros(*shape, value_states.shape[1], value_states.shape[3])
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the states (rows, heads, tokens, width) and return those of all columns in use."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        owner = self._owner
        found = []
        for kept, new in ((self.keys, key_states), (self.values, value_states)):
            kept[owner.index, owner.columns] = new.transpose(1, 2).to(kept.dtype)
            # A view, or of scattered rows a copy.
            rows = kept[owner.index[:, 0] if owner.run is None else owner.run, : owner.used]
            found.append(rows.transpose(1, 2))
        return found[0], found[1]

    def resize(self) -> None:
        """Make room for as many rows and columns as the owner wants."""
        if self.is_initialized:
            for name in ("keys", "values"):
                old = getattr(self, name)
                new = old.new_zeros(self._owner.rows, self._owner.capacity + 1, *old.shape[2:])
                new[: old.shape[0], : old.shape[1] - 1] = old[:, :-1]
                setattr(self, name, new)

    def copy(self, source: int, target: int, columns: int) -> None:
        """Copy the first columns of a slot to another one."""
        if self.is_initialized:
            for kept in (self.keys, self.values):
                kept[target, :columns] = kept[source, :columns]

    def get_seq_length(self) -> int:
        """Return the columns in use; positions are always given explicitly."""
        return self._owner.used

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return length and offset of the keys; the mask is always given explicitly."""
        return self._owner.used, 0

    def get_max_length(self) -> int:
        """Return -1: it grows."""
        return -1


class SlotCache(Cache):  # type: ignore[misc]  # transformers is not typed
    """The cache of all layers, and the forward pass over some of its slots.

    Args:
        model: a causal language model of ``transformers``; adapters injected into it are used.
        slots: most conversations that it holds; memory is taken for those that were reserved.

    Raises:
        UnsupportedModelError: if the model declares layers or an attention that cannot work like this.
    """

    def __init__(self, model: Any, slots: int) -> None:
        self._model = model.get_base_model() if hasattr(model, "get_base_model") else model
        config = self._model.config.get_text_config()
        self._windows = _windows(config)
        self._additive = _additive(config)
        parameters = inspect.signature(self._model.forward).parameters
        self._name = "cache" if "cache" in parameters else "past_key_values"  # transformers before 5.24
        if "position_ids" not in parameters:
            raise UnsupportedModelError("its forward pass takes no position_ids")
        self.slots, self.rows, self.capacity, self.used = slots, 1, _GRAIN, 0
        self.index = self.columns = torch.empty(0)
        self.run: slice | None = None  # the slots of a forward pass, if they stand next to each other
        super().__init__(layers=[_Layer(self) for _ in range(config.num_hidden_layers)])

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return torch.device(self._model.device)

    @property
    def vocabulary(self) -> int:
        """Logits of one position."""
        return int(self._model.config.get_text_config().vocab_size)

    def reserve(self, columns: int, rows: int = 1) -> None:
        """Make room for contexts of ``columns`` ids in the first ``rows`` slots."""
        if columns > self.capacity or rows > self.rows:
            if columns > self.capacity:
                self.capacity = max(-(-columns // _GRAIN) * _GRAIN, self.capacity * 3 // 2)
            self.rows = min(self.slots, max(rows, self.rows))
            for layer in self.layers:
                layer.resize()

    def copy(self, source: int, target: int, columns: int) -> None:
        """Copy the first columns of slot ``source`` to slot ``target``."""
        for layer in self.layers:
            layer.copy(source, target, columns)

    def forward(self, rows: list[int], ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Run the model over tokens of some slots, and keep their keys and values.

        Args:
            rows: slots, ascending.
            ids: (rows, tokens); rows with fewer tokens are padded on the left.
            positions: (rows, tokens) of those ids in their conversations, -1 for padding.

        Returns:
            Logits (rows, vocabulary) after the last token of each row, float32.
        """
        device = self.device
        kept = positions >= 0
        columns = positions.where(kept, self.capacity)
        positions = positions.clamp(min=0)
        self.used = min(self.capacity, -(-(int(positions.max()) + 1) // 16) * 16)  # aligned, as fast kernels want it
        self.run = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == len(rows) - 1 else None
        self.index = torch.tensor(rows, device=device)[:, None]
        self.columns = columns.to(device)
        positions = positions.to(device)
        output = self._model(
            input_ids=ids.to(device),
            attention_mask=self._masks(positions),
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{self._name: self},
        )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def _masks(self, positions: torch.Tensor) -> Any:
        """Return what each query (rows, 1, tokens, columns) attends to; one mask for each kind of layer."""
        column = torch.arange(self.used, device=positions.device)
        query = positions[:, None, :, None]
        masks = {}
        for kind, window in self._windows.items():
            seen = column <= query
            if window:
                seen &= column > query - window
            masks[kind] = self._additive_mask(seen) if self._additive else seen
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _additive_mask(self, seen: torch.Tensor) -> torch.Tensor:
        dtype = self._model.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, torch.finfo(dtype).min)


def _windows(config: Any) -> dict[str, int]:
    """Return the kinds of attention layers with their windows, 0 for none."""
    kinds = sorted(set(getattr(config, "layer_types", None) or ["full_attention"]))
    if other := [kind for kind in kinds if kind not in ("full_attention", "sliding_attention")]:
        raise UnsupportedModelError(f"it has layers of kind {', '.join(other)}")
    window = int(getattr(config, "sliding_window", None) or 0)
    if kinds == ["full_attention"] and window and getattr(config, "layer_types", None) is None:
        return {"sliding_attention": window}  # e.g. Mistral: one window for all layers
    return {kind: window if kind == "sliding_attention" else 0 for kind in kinds}


def _additive(config: Any) -> bool:
    implementation = getattr(config, "_attn_implementation", None)
    if implementation not in ("sdpa", "eager"):
        raise UnsupportedModelError(f"its attention is {implementation}; sdpa or eager take a mask for each token")
    return bool(implementation == "eager")

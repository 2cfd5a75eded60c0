"""Turns decoded side by side in a fixed number of slots, by a ``transformers`` model in this process.

Each slot holds one conversation and keeps its keys and values between turns, so an observation costs its own tokens
only. A turn leaves as soon as it has ended; a conversation that has ended makes room for the next one at once. A new
conversation takes over the columns that it shares with any slot: plain and hinted plays of one environment, programs
for one document, the system prompt. (Continuous batching: Yu et al., Orca, OSDI 2022; shared prefixes: Kwon et al.,
PagedAttention, SOSP 2023.)

What is sampled depends on the seed, the key and the turn of a request, not on its neighbours, but for rounding; the
order of work is the same at every run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from spade_train.cycle import Sample
from spade_train.engine import TurnRequest
from spade_train.engines.draw import Draw, uniforms
from spade_train.engines.kv import SlotCache, UnsupportedModelError

_WORTH = 32  # shared ids from which on copying columns, or waiting for them, beats computing them
_KEPT = 4  # conversations that may come back are kept in as many slots at least


@dataclass(slots=True)
class _Turn:
    request: TurnRequest
    temperature: float
    numbers: Any  # one in [0, 1) for each token
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class SlotEngine:
    """Continuous batching over a cache of slots; see :class:`spade_train.engine.Engine`.

    Args:
        model: a causal language model of ``transformers``, in the state in which it is to sample.
        draw: settings of sampling.
        ends: ids that end a turn.
        slots: conversations decoded together.
        seed: numbers that the random streams of all turns start from.
        lag: see :class:`spade_train.engine.Engine`.
        chunk_tokens: most tokens of contexts that one step reads before it decodes.
        keep: whether conversations may come back, under other keys, after they were released (requests to a server,
            which does not know its conversations): a new one takes the slot of what it continues, else the one that
            was left longest ago, and none is moved.

    Raises:
        UnsupportedModelError: if the model cannot work with a cache of slots.
    """

    def __init__(
        self,
        model: Any,
        draw: Draw,
        ends: Iterable[int],
        *,
        slots: int = 64,
        seed: Sequence[int] = (0,),
        lag: int = 0,
        chunk_tokens: int = 4096,
        keep: bool = False,
    ) -> None:
        self.lag = lag
        self.steps = 0  # decoding steps so far
        self.read = 0  # tokens of contexts that were computed; the others were copied or kept
        self._draw, self._ends, self._seed = draw, frozenset(ends), tuple(seed)
        self._chunk, self._keep = chunk_tokens, keep
        self._cache = SlotCache(model, slots)
        self._ids = np.zeros((slots, self._cache.capacity), np.int64)
        self._length = np.zeros(slots, np.int64)  # ids of the conversation so far
        self._cached = np.zeros(slots, np.int64)  # columns that hold their keys and values
        self._turns: dict[int, _Turn] = {}  # slot: the turn it samples
        self._holder: dict[int, int] = {}  # key: its slot
        self._left = dict.fromkeys(range(slots))  # slots in the order in which they were left
        self._waiting: deque[TurnRequest] = deque()
        self._waits: dict[int, tuple[int, _Turn, int]] = {}  # slot: whose columns it waits for, up to which one
        self._seen: torch.Tensor | None = None

    def submit(self, requests: Sequence[TurnRequest]) -> None:
        """Take turns: at once where the conversation has a slot, else first come, first served.

        Raises:
            ValueError: if a turn may have no tokens, has no context, or its conversation is running already.
        """
        running = {turn.request.key for turn in self._turns.values()} | {one.key for one in self._waiting}
        for request in requests:
            if request.max_tokens < 1 or not request.context:
                raise ValueError(f"expected a context and at least one token for turn {request.key}, got {request}")
            if request.key in running:
                raise ValueError(f"conversation {request.key} is running already: collect its turn first")
            running.add(request.key)
            if (slot := self._holder.get(request.key)) is None:
                self._waiting.append(request)
            else:
                self._start(slot, request)
        self._reserve(1, len(self._holder) + len(self._waiting))

    def release(self, keys: Iterable[int]) -> None:
        """Free the slots of conversations that have ended; what they hold stays there to be shared."""
        for key in keys:
            if (slot := self._holder.pop(key, None)) is not None:
                self._turns.pop(slot, None)
                self._left[slot] = self._left.pop(slot)

    def busy(self, running: int) -> bool:
        """Whether there is work here; other ranks sample on their own."""
        return running > 0

    def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
        """Decode until a turn has ended; see :class:`~spade_train.engine.Engine`.

        Raises:
            MemoryError: if the device's memory does not hold the conversations.
        """
        try:
            return self._collect(self.steps + steps if steps else None)
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(
                f"out of GPU memory with {self._cache.rows} conversations of up to {self._cache.capacity} tokens in "
                f"the cache: lower generation_rows"
            ) from error

    def _collect(self, limit: int | None) -> list[tuple[int, Sample]]:
        while True:
            self._fill()
            if not self._turns:
                return []
            self._prefill()
            if finished := self._decode():
                return finished
            if limit is not None and self.steps >= limit:
                return []

    def _fill(self) -> None:
        """Give free slots to those that wait, or, if nobody waits, move conversations to the front."""
        taken = set(self._holder.values())
        if not self._waiting:
            if not self._keep:
                self._move_up(taken)
            return
        used = self._cache.slots
        if self._keep:
            used = min(used, max(_KEPT, self._cache.rows, len(taken) + len(self._waiting)))
        free = [slot for slot in range(used) if slot not in taken]
        if not free and not self._turns:  # all slots are held by conversations that say nothing
            key, slot = next(iter(self._holder.items()))
            del self._holder[key]
            free = [slot]
        while free and self._waiting:
            request = self._waiting.popleft()
            slot = self._continued(free, request.context) if self._keep else free[0]
            free.remove(slot)
            self._reserve(1, slot + 1)
            self._holder[request.key] = slot
            self._start(slot, request)

    def _continued(self, free: list[int], context: list[int]) -> int:
        """Return the free slot most of which is the beginning of ``context``, or the one that was left first."""
        shared = self._shared(np.asarray(context, np.int64), free)
        best = int(shared.argmax())
        if shared[best] >= _WORTH and 2 * shared[best] >= self._cached[free[best]]:
            return free[best]
        return next(slot for slot in self._left if slot in free)

    def _start(self, slot: int, request: TurnRequest) -> None:
        """Begin a turn; the columns that agree with its context are kept."""
        self._waits.pop(slot, None)
        context = np.asarray(request.context, np.int64)
        self._reserve(len(context) + 1)
        kept = min(int(self._shared(context, slice(slot, slot + 1))[0]), len(context) - 1)
        self._ids[slot, : len(context)] = context
        self._length[slot], self._cached[slot] = len(context), kept
        temperature = self._draw.temperature if request.temperature is None else request.temperature
        stream = (self._seed, request.key, request.turn) if request.seed is None else ((), request.seed, 0)
        numbers = uniforms(*stream, request.max_tokens)
        self._turns[slot] = _Turn(request, temperature, numbers)
        if self._draw.repetition_penalty != 1.0:
            if self._seen is None:
                size = (self._cache.slots, self._cache.vocabulary)
                self._seen = torch.zeros(size, dtype=torch.bool, device=self._cache.device)
            self._seen[slot] = False
            self._seen[slot, torch.from_numpy(context).to(self._seen.device)] = True

    def _shared(self, context: Any, slots: Any) -> Any:
        """Return for each of the slots how many of its columns are those of the beginning of ``context``."""
        width = min(len(context), self._ids.shape[1])
        equal = self._ids[slots, :width] == context[:width]
        first_difference = np.where(equal.all(axis=1), width, equal.argmin(axis=1))
        return np.minimum(first_difference, self._cached[slots])

    def _reserve(self, columns: int, rows: int = 1) -> None:
        self._cache.reserve(columns, rows)
        if (missing := self._cache.capacity - self._ids.shape[1]) > 0:
            self._ids = np.pad(self._ids, ((0, 0), (0, missing)))

    def _move_up(self, taken: set[int]) -> None:
        """Keep the slots in use next to each other, so that a step computes no empty ones."""
        used = max(taken, default=-1) + 1
        if used - len(taken) <= used // 8:
            return
        owner = {slot: key for key, slot in self._holder.items()}
        self._waits.clear()
        free = [slot for slot in range(used) if slot not in taken]
        for slot in sorted(taken, reverse=True):
            if not free or free[0] > slot:
                return
            target = free.pop(0)
            self._copy(slot, target, int(self._cached[slot]))
            self._ids[target] = self._ids[slot]
            self._length[target] = self._length[slot]
            self._holder[owner[slot]] = target
            if slot in self._turns:
                self._turns[target] = self._turns.pop(slot)
            if self._seen is not None:
                self._seen[target] = self._seen[slot]

    def _copy(self, source: int, target: int, columns: int) -> None:
        self._cache.copy(source, target, columns)
        self._cached[target] = columns

    def _prefill(self) -> None:
        """Read contexts up to their last id, at most one chunk of tokens."""
        pending = [slot for slot in sorted(self._turns) if self._unread(slot) > 0]
        slots = sorted(self._leaders(pending), key=lambda slot: -self._unread(slot)) if pending else []
        budget = self._chunk
        while slots and budget > 0:
            width = min(self._unread(slots[0]), budget)
            count = max(1, min(len(slots), budget // width))
            group, slots = sorted(slots[:count]), slots[count:]
            counts = {slot: min(width, self._unread(slot)) for slot in group}
            budget -= width * len(group)
            self.read += sum(counts.values())
            self._forward(group, counts)

    def _unread(self, slot: int) -> int:
        """Return how many ids of the context are to be computed before the last one."""
        return int(self._length[slot] - 1 - self._cached[slot])

    def _leaders(self, pending: list[int]) -> list[int]:
        """Return slots for one chunk: copy what others hold, leave out those that share what is to be computed."""
        leaders: list[int] = []
        budget = self._chunk
        for slot in pending:
            if budget <= 0:
                break
            if self._still_waits(slot):
                continue
            have, wanted = int(self._cached[slot]), int(self._length[slot]) - 1
            if wanted - have >= _WORTH:
                coming, leader = max(((self._agree(slot, one), one) for one in leaders), default=(0, slot))
                if coming - have >= _WORTH and coming > self._cached[leader]:
                    self._waits[slot] = (leader, self._turns[leader], coming)
                    continue
                shared = self._shared(self._ids[slot, :wanted], slice(self._cache.rows))
                source = int(shared.argmax())
                if shared[source] - have >= _WORTH:
                    self._copy(source, slot, int(shared[source]))
            if (unread := self._unread(slot)) > 0:
                leaders.append(slot)
                budget -= unread
        return leaders

    def _still_waits(self, slot: int) -> bool:
        """Whether a slot waits for columns that another one is computing. Nobody waits for one that waits then."""
        if slot not in self._waits:
            return False
        leader, turn, columns = self._waits[slot]
        if self._turns.get(leader) is turn and self._cached[leader] < columns:
            return True
        del self._waits[slot]
        return False

    def _agree(self, slot: int, leader: int) -> int:
        """Return how many columns of ``leader`` will serve ``slot`` once they are computed."""
        width = int(min(self._length[slot], self._length[leader])) - 1
        equal = self._ids[slot, :width] == self._ids[leader, :width]
        return width if equal.all() else int(equal.argmin())

    def _forward(self, rows: list[int], counts: dict[int, int]) -> torch.Tensor:
        """Run the next ids of some slots, as many as ``counts`` says; return the logits after them.

        ``rows`` may hold further slots, which are passed over.
        """
        width = max(counts.values())
        ids = np.zeros((len(rows), width), np.int64)
        positions = np.full((len(rows), width), -1, np.int64)
        for row, slot in enumerate(rows):
            if (count := counts.get(slot, 0)) > 0:
                start = self._cached[slot]
                ids[row, width - count :] = self._ids[slot, start : start + count]
                positions[row, width - count :] = np.arange(start, start + count)
                self._cached[slot] += count
        return self._cache.forward(rows, torch.from_numpy(ids), torch.from_numpy(positions))

    def _decode(self) -> list[tuple[int, Sample]]:
        """Sample one token for each turn whose context has been read; return the turns that end with it."""
        ready = [slot for slot in sorted(self._turns) if self._unread(slot) == 0]
        if not ready:
            return []
        self.steps += 1
        run = list(range(ready[0], ready[-1] + 1))
        rows = run if 2 * len(ready) >= len(run) else ready  # passing over a few beats gathering the others' cache
        logits = self._forward(rows, dict.fromkeys(ready, 1))
        if len(rows) > len(ready):
            logits = logits[[slot - ready[0] for slot in ready]]
        turns = [self._turns[slot] for slot in ready]
        tokens, logprobs = self._draw.draw(
            logits,
            [turn.temperature for turn in turns],
            [turn.numbers[len(turn.ids)] for turn in turns],
            None if self._seen is None else self._seen[ready],
            [self._draw.top_p if (own := turn.request.top_p) is None else own for turn in turns],
        )
        self._reserve(int(self._length[ready].max()) + 1)
        finished = []
        for slot, turn, token, logprob in zip(ready, turns, tokens, logprobs, strict=True):
            turn.ids.append(token)
            turn.logprobs.append(logprob)
            self._ids[slot, self._length[slot]] = token
            self._length[slot] += 1
            if self._seen is not None:
                self._seen[slot, token] = True
            if token in self._ends or len(turn.ids) == turn.request.max_tokens:
                del self._turns[slot]
                finished.append((turn.request.key, Sample(turn.ids, turn.logprobs)))
        return finished


def check_model(model: Any) -> None:
    """Compare a small computation over slots with the model's plain forward pass.

    Raises:
        UnsupportedModelError: if the model declares that it cannot work like this, or computes something else.
    """
    lengths = (7, 12)
    generator = np.random.default_rng(0)
    cache = SlotCache(model, 2)
    ids = torch.from_numpy(generator.integers(0, min(cache.vocabulary, 1000), (2, max(lengths))))
    positions = torch.arange(max(lengths)).expand(2, -1)
    with torch.no_grad():
        plain = model(input_ids=ids.to(cache.device), use_cache=False).logits.float()
        cache.reserve(max(lengths), 2)
        cache.forward([1], ids[1:, :5], positions[1:, :5])
        cache.copy(1, 0, 0)
        cache.forward(
            [0, 1], torch.stack([ids[0, :4], ids[1, 5:9]]), torch.stack([positions[0, :4], positions[1, 5:9]])
        )
        for step in range(3):
            found = cache.forward(
                [0, 1],
                torch.stack([ids[0, 4 + step], ids[1, 9 + step]])[:, None],
                torch.tensor([[4 + step], [9 + step]]),
            )
    expected = torch.stack([plain[0, lengths[0] - 1], plain[1, lengths[1] - 1]])
    error = (found - expected).abs().mean() / expected.std().clamp(min=1e-9)
    tolerance = 1e-4 if plain.dtype == model.dtype == torch.float32 else 0.05
    if not error < tolerance:
        raise UnsupportedModelError(f"its logits over slots are off by {error:.2g} standard deviations")

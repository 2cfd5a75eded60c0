"""Numbers about what stands around a cycle: diversity of programs and memory, isolation of the sandbox."""

from __future__ import annotations

import contextlib

from spade_envs.memory import Memory, vendi_score
from spade_envs.sandbox import Sandbox, SandboxError
from spade_train.cycle import Cycle

_LEVELS = {"full": 1.0, "wasi": 1.0, "partial": 0.5, "static": 0.0}
"""WebAssembly keeps a program in as well as the layers of the system do."""
_FEWEST = 4
"""Programs of which the diversity says something: that of n programs lies in [1/n, 1]."""
_MOST = 10_000
"""Records up to which the diversity of the memory is measured in every cycle; above, its vectors take too long."""


def watch_metrics(cycle: Cycle, memory: Memory, sandbox: Sandbox) -> dict[str, float]:
    """Return metrics of the memory as it was before the cycle, of the cycle's programs and of the sandbox.

    Diversity is the Vendi score of the embeddings: how many different ones there are in effect; divided by their number
    it is 1 if all are unlike each other.
    """
    metrics = {"memory/size": float(len(memory))}
    with contextlib.suppress(SandboxError):  # where all programs are trusted ones, it may not be able to start
        metrics["sandbox/isolation"] = _LEVELS[sandbox.isolation.level]
    sources = [one.attempt.source for one in cycle.written if one.attempt.source]
    if len(sources) >= _FEWEST:
        score = vendi_score(memory.embed(sources))
        metrics |= {"diversity/ideas": score, "diversity/designs": score / len(sources)}
    if 1 < len(memory) <= _MOST:
        newest = memory.records(limit=memory.capacity, newest_first=True)
        wanted = {record.id for record in newest}
        ids, vectors = memory.vectors()
        places = [place for place, id in enumerate(ids) if id in wanted]
        if len(places) > 1:
            metrics["diversity/memory"] = vendi_score(vectors[places]) / len(places)
    return metrics

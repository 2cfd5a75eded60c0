"""Scores answers with reasoning-gym, each in a jailed process of its own. Run as a script by :mod:`.scorer`.

Several tasks of reasoning-gym evaluate the answer as Python (``eval``, sympy's ``parse_expr``), and the answer is
whatever a model wrote. So this process loads the tasks and never sees an answer being scored: it forks for every
answer, the child locks itself down as a worker of the sandbox does, and what the child says is one byte and one number.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

REQUEST = struct.Struct("<I")  # length of the pickle that follows
REPLY = struct.Struct("<Bd")  # status, score
SCORED, FAILED, UNSAFE = 0, 1, 2
CPU_SECONDS, WALL_SECONDS, MEMORY_MB = 3, 10, 512


def _score(dataset: Any, answer: str, entry: dict[str, Any], minimum: str, parent: int, pipe: int) -> NoReturn:
    """In the child: lock down, score, say so, end."""
    from spade_envs.sandbox import jail

    layers = jail.lock_down(keep=pipe, parent=parent, memory_mb=MEMORY_MB, cpu_seconds=CPU_SECONDS)
    if not jail.at_least(jail.isolation_level(layers), minimum):  # type: ignore[arg-type]
        os.write(pipe, REPLY.pack(UNSAFE, 0.0))
        os._exit(0)
    try:
        reply = REPLY.pack(SCORED, float(dataset.score_answer(answer, entry)))
    except BaseException:
        reply = REPLY.pack(FAILED, 0.0)
    os.write(pipe, reply)
    os._exit(0)


def _forked(dataset: Any, answer: str, entry: dict[str, Any], minimum: str) -> bytes:
    """Return the child's reply; a child that ended without one has failed."""
    parent = os.getpid()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _score(dataset, answer, entry, minimum, parent, writing)
        finally:
            os._exit(70)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], WALL_SECONDS)
    reply = os.read(reading, REPLY.size) if ready else b""  # it is shorter than what a pipe writes at once
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return reply if len(reply) == REPLY.size and reply[0] in (SCORED, FAILED, UNSAFE) else REPLY.pack(FAILED, 0.0)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:  # the caller went away
            os._exit(0)
        data += chunk
    return data


def serve(connection: socket.socket) -> NoReturn:
    """Answer requests ``(task, its settings, entry, answer, minimum isolation)`` until the caller goes away."""
    import reasoning_gym

    from spade_envs.sandbox import jail

    jail.warm()
    datasets: dict[bytes, Any] = {}
    while True:
        (size,) = REQUEST.unpack(_receive(connection, REQUEST.size))
        task, settings, entry, answer, minimum = pickle.loads(_receive(connection, size))
        key = pickle.dumps((task, sorted(settings.items())))
        dataset = datasets.get(key)
        if dataset is None:
            dataset = datasets[key] = reasoning_gym.create_dataset(task, seed=0, size=1, **settings)
            first = dataset[0]  # with an answer of the package's own, so that whatever loads late is there
            with contextlib.suppress(Exception):
                dataset.score_answer(str(first["answer"]), first)
            gc.collect()
            gc.freeze()
        connection.sendall(_forked(dataset, answer, entry, minimum))


if __name__ == "__main__":
    descriptor, *path = sys.argv[1:]
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in (*sys.path, *path) if entry != here]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(socket.socket(fileno=int(descriptor)))

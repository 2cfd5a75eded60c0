"""The caller's side of scoring reasoning-gym answers in a jail; see :mod:`.scorer_server`."""

from __future__ import annotations

import contextlib
import pickle
import re
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from spade_envs.sandbox.process import interpreter_environment
from spade_envs.sandbox.types import IsolationLevel, SandboxError
from spade_train.pool_sources import scorer_server as server

_START_SECONDS = 120.0  # the package takes some seconds to import, more on a busy machine
_CALLS_CODE = re.compile(
    r"__|\b(?:eval|exec|compile|open|globals|locals|vars|getattr|setattr|delattr|breakpoint|exit|quit|chr|sympify|"
    r"parse_expr|lambdify)\("
)
"""What no answer needs, and what code would need that pays itself: the jail keeps it in, not its score down."""


class Scorer:
    """Scores answers of a model with the tasks' own ``score_answer``, which may evaluate them as code.

    The server starts with the first answer and ends with this object. Safe to use from several threads.

    Args:
        minimum_isolation: what the system must offer.
    """

    def __init__(self, minimum_isolation: IsolationLevel = "full") -> None:
        self._minimum = minimum_isolation
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def score(self, task: str, settings: Mapping[str, Any], entry: Mapping[str, Any], answer: str) -> float:
        """Return the score in [0, 1]; an answer that is code, crashes the scorer or takes too long gets 0.

        Raises:
            SandboxError: if the server cannot run, or isolation is below the minimum.
        """
        if _CALLS_CODE.search(answer):
            return 0.0
        request = pickle.dumps((task, dict(settings), dict(entry), answer, self._minimum))
        with self._lock:
            reply = self._ask(request)
        status, score = server.REPLY.unpack(reply)
        if status == server.UNSAFE:
            raise SandboxError(
                f"answers cannot be scored: isolation on this system is below {self._minimum!r}, and reasoning-gym "
                f"evaluates some of them as code. `spade doctor` says what is missing"
            )
        return min(1.0, max(0.0, score)) if status == server.SCORED and score == score else 0.0

    def _ask(self, request: bytes) -> bytes:
        """Return the server's reply. One that has died since it was used last is replaced, once."""
        again = self._connection is not None
        while True:
            try:
                connection = self._connection or self._start()
                connection.sendall(server.REQUEST.pack(len(request)) + request)
                return self._reply(connection)
            except OSError as error:
                said = self._said()
                self._stop()
                if not again:
                    raise SandboxError(f"the process that scores answers does not answer: {error}. {said}") from error
                again = False
            except BaseException:  # interrupted in the middle of an exchange: the next one needs a new server
                self._stop()
                raise

    def close(self) -> None:
        """End the server; the next answer starts another one."""
        with self._lock:
            self._stop()

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 — read when the process fails
        script = Path(server.__file__)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-P", str(script), str(theirs.fileno()), *filter(None, sys.path)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                env=interpreter_environment(),
                cwd="/",
            )
        ours.settimeout(_START_SECONDS)
        self._connection = ours
        weakref.finalize(self, _end, ours, self._process)
        return ours

    @staticmethod
    def _reply(connection: socket.socket) -> bytes:
        data = b""
        while len(data) < server.REPLY.size:
            chunk = connection.recv(server.REPLY.size - len(data))
            if not chunk:
                raise ConnectionError("it ended")
            data += chunk
        return data

    def _said(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        text = self._log.read().decode("utf-8", "replace").strip()
        return f"It said: {text[-500:]}" if text else ""

    def _stop(self) -> None:
        connection, process = self._connection, self._process
        self._connection = self._process = None
        if connection is not None and process is not None:
            _end(connection, process)
        if self._log is not None:
            self._log.close()
            self._log = None


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    if process.poll() is None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5.0)

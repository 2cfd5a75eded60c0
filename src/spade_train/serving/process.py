"""A served model for as long as it is needed: ``spade serve`` in a process of its own, or an endpoint that is there."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import httpx

from spade_envs.models.base import ModelError

_START_SECONDS = 900.0  # of a large model


class Served(NamedTuple):
    """Where a model is to be had."""

    base_url: str
    model: str


@contextlib.contextmanager
def served_model(
    spec: str,
    *,
    adapter: Path | None = None,
    base_url: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    batch: int = 16,
    max_tokens: int = 4096,
) -> Iterator[Served]:
    """Give an endpoint of the model: the user's for ``openai:…``, else one that lives as long as the context.

    Args:
        spec: of the model.
        adapter: folder of an adapter.
        base_url: of the endpoint of an ``openai:…`` model.
        device, dtype, batch: of a model that is served here.
        max_tokens: of a reply, where a request has no bound.

    Raises:
        ModelError: if the server does not start; what it said is in the message.
    """
    kind, _, rest = spec.partition(":")
    if kind == "openai":
        from spade_envs.models.openai import OpenAIModel

        if adapter is not None:
            raise ModelError(f"an adapter goes on a model that is served here, got {spec!r}")
        yield Served(OpenAIModel(rest, base_url=base_url).base_url, rest)
        return
    name = Path(rest).name if rest else spec
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    served = f"hf:{rest}" if kind == "vllm" else spec  # the engine is the server's choice
    command = [sys.executable, "-m", "spade_train.serving", "--model", served, "--port", str(port)]
    command += ["--batch", str(batch), "--served-model-name", name, "--max-tokens", str(max_tokens)]
    for option, value in (("--adapter", adapter), ("--device", device), ("--dtype", dtype)):
        command += [option, str(value)] if value is not None else []
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait(process, f"http://127.0.0.1:{port}/health", log)
            yield Served(f"http://127.0.0.1:{port}/v1", name)
        finally:
            process.terminate()
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: IO[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    with httpx.Client(trust_env=False, timeout=5.0) as client:
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                if client.get(url).status_code == 200:
                    return
            time.sleep(0.2)
    log.seek(0)
    said = log.read().decode("utf-8", "replace").strip()[-800:]
    raise ModelError(f"the model could not be served. The server said: {said or 'nothing'}")

"""``spade serve``."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from spade_envs.cli.console import err, shown


def serve(
    model: Annotated[str, typer.Option("--model", help="nano, smollm2 or hf:<directory or hub id>.")],
    adapter: Annotated[Path | None, typer.Option(help="Folder of a LoRA adapter to put on it.")] = None,
    name: Annotated[str | None, typer.Option("--served-model-name", help="By default the model's own.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on. Anyone who reaches it can use the model.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one, which is printed.")] = 8000,
    engine: Annotated[str, typer.Option(help="auto (vLLM where a GPU and vLLM are), vllm or transformers.")] = "auto",
    batch: Annotated[int, typer.Option(min=1, help="Most requests answered together.")] = 16,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of a reply, where a request has no bound.")] = 1024,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, …; by default the GPU if there is one.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, …")] = None,
) -> None:
    """Serve a model at an OpenAI-compatible chat endpoint with tool calls, on this machine only by default.

    Example: `spade serve --model smollm2 --port 8000`
    """
    from spade_envs.models import check_spec
    from spade_envs.models.pretrained import check_obtainable
    from spade_train.serving.vllm_command import vllm_can_serve, vllm_command

    check_spec(model)
    kind, _, rest = model.partition(":")
    if kind in ("openai", "vllm"):
        raise ValueError(f"--model takes nano, smollm2 or hf:…, got {model!r}; for vLLM use --engine vllm")
    if engine not in ("auto", "vllm", "transformers"):
        raise ValueError(f"--engine must be auto, vllm or transformers, got {engine!r}")
    served = name or (Path(rest).name if rest else model)
    if engine == "vllm" or (engine == "auto" and kind == "hf" and vllm_can_serve()):
        if kind != "hf":
            raise ValueError(f"vLLM serves hf:…, got {model!r}")
        check_obtainable(rest)
        listen(host, port).close()  # vLLM would say that the port is taken when it has loaded the model
        command = vllm_command(rest, served, host, port, adapter=str(adapter) if adapter else None, dtype=dtype)
        err.print(shown(" ".join(command)))
        os.execv(command[0], command)
    _serve(model, adapter, served, host, port, batch, max_tokens, device, dtype)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ValueError: if it cannot; the message says what to do.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        advice = {
            errno.EADDRINUSE: "another program listens there: name another --port, or 0 for a free one",
            errno.EACCES: "ports below 1024 are the system's: name a higher --port",
        }.get(error.errno or 0, "--host must be an address of this machine, such as 127.0.0.1 or 0.0.0.0")
        said = "" if error.errno == errno.EADDRINUSE else f" ({error.strerror})"
        raise ValueError(f"cannot listen on port {port} of {host}{said}: {advice}") from error


def _serve(
    model: str, adapter: Path | None, name: str, host: str, port: int, batch: int, max_tokens: int,
    device: str | None, dtype: str | None,
) -> None:  # fmt: skip
    try:
        import uvicorn

        from spade_train.serving.server import make_app
        from spade_train.serving.slot_batcher import answers
    except ImportError as error:
        raise ValueError(f"serving needs starlette and uvicorn ({error}): pip install 'spade-envs[serve]'") from error
    from spade_envs.models import load_model

    listening = listen(host, port)
    loaded = load_model(model, adapter=str(adapter) if adapter else None, device=device, dtype=dtype, batch_size=batch)
    batcher = answers(loaded, batch)  # type: ignore[arg-type]  # nano, smollm2 and hf: are TransformersModels
    app = make_app(loaded, batcher, [name], max_tokens)  # type: ignore[arg-type]
    address = f"[{host}]" if ":" in host else host
    # One line on standard output, which whoever started this process waits for.
    sys.stdout.write(f"http://{address}:{listening.getsockname()[1]}/v1\n")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    try:
        server.run(sockets=[listening])
    finally:
        batcher.close()
        loaded.close()

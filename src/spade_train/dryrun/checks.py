"""Whether what a run needs is there; each check says what to do if it is not. No weights are read."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

from spade_train.config import SpadeConfig

_TRACKERS = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "tensorboard", "mlflow": "mlflow"}
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_LITTLE_BYTES = 5 << 30
_SERVER_SECONDS = 5.0


class Check(NamedTuple):
    """One thing that a run needs."""

    name: str
    ok: bool
    detail: str  # what was found
    remedy: str = ""  # what to do if it is missing


def check_accelerator(config: SpadeConfig, *, forced_cpu: bool) -> Check:
    """Whether the recipe's device is there. ``forced_cpu``: the recipe wants a GPU and was read without one."""
    import torch

    if forced_cpu:
        return Check("accelerator", False, "none", "the recipe needs a GPU; run it on a machine that has one")
    if config.use_cpu:
        return Check("accelerator", True, "CPU, as the recipe asks")
    found = torch.cuda.device_count()
    return Check("accelerator", True, f"{found} CUDA device(s)" if found else "CPU or Apple GPU")


def check_model(model: str) -> tuple[Check, Path | None]:
    """Whether the policy's files are on this machine; the folder with its configuration and tokenizer."""
    from spade_envs.models.transformers import NANO_FOLDER

    if model == "nano":
        return Check("model", True, "embedded"), NANO_FOLDER
    if model == "smollm2":
        return _check_smollm2()
    folder = Path(model)
    if not folder.is_dir():
        if os.path.isabs(model) or model.startswith("."):
            return Check("model", False, f"no folder {model}", "give a folder with config.json, or owner/name"), None
        return _check_hub_model(model)
    if not (folder / "config.json").is_file():
        return Check("model", False, f"{folder} has no config.json", "give the folder of a whole model"), None
    if not any((folder / name).is_file() for name in _WEIGHTS):
        return Check("model", False, f"{folder} has no weights", f"expected one of {', '.join(_WEIGHTS)}"), folder
    return Check("model", True, str(folder)), folder


def _check_smollm2() -> tuple[Check, Path | None]:
    """It is unpacked now if it has not been: that takes a minute once, and belongs to getting ready."""
    from spade_envs.models import ModelError
    from spade_envs.models.smollm2 import smollm2_folder

    try:
        folder = smollm2_folder()
    except ModelError as error:
        return Check("model", False, str(error)), None  # it says how to install it
    return Check("model", True, str(folder)), folder


def _check_hub_model(name: str) -> tuple[Check, Path | None]:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    remedy = f"hf download {name}"
    try:
        config = try_to_load_from_cache(name, "config.json")
        whole = any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS)
    except HFValidationError as error:
        return Check("model", False, str(error), "give a folder, or owner/name of a model on the Hub"), None
    if not isinstance(config, str):
        return Check("model", False, f"{name} is neither a folder nor in the cache of the Hub", remedy), None
    folder = Path(config).parent
    return Check("model", whole, str(folder) if whole else f"weights of {name} are not in the cache", remedy), folder


def check_sandbox(config: SpadeConfig) -> Check:
    """Whether programs can be isolated as well as asked for; starts one real worker."""
    from spade_envs.sandbox import Sandbox, SandboxError
    from spade_envs.sandbox.types import IsolationLevel

    wanted = cast(IsolationLevel, config.minimum_isolation)
    try:
        with Sandbox(minimum_isolation=wanted, max_workers=1) as sandbox:
            return Check("sandbox", True, f"isolation {sandbox.isolation.level}")
    except SandboxError as error:
        return Check("sandbox", False, str(error), "`spade doctor` says what is missing")


def check_output(config: SpadeConfig, *, resume: bool = False) -> Check:
    """Whether the run folder can be written and holds no other run; to resume, how far that one is."""
    from spade_train.callbacks import last_checkpoint
    from spade_train.callbacks.checkpoints import checkpoint_step

    folder = Path(config.output_dir or ".")
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Check("output", False, f"{existing} cannot be written", "choose another --output")
    whole = last_checkpoint(folder)
    if whole is not None and not resume:
        return Check("output", False, f"{folder} holds a run ({whole.name})", "go on with --resume, or choose another")
    free = shutil.disk_usage(existing).free
    detail = f"{folder}, {free / (1 << 30):.0f} GiB free"
    if whole is not None:
        step, last = checkpoint_step(whole), int(config.max_steps)
        if step >= last:
            left = f"{folder} has done {step} of {last} steps already"
            return Check("output", False, left, f"raise max_steps (--set max_steps={2 * step})")
        detail += f"; goes on after step {step} of {last}"
    elif resume:
        detail += "; no checkpoint in it: the run starts at its first step"
    return Check("output", free >= _LITTLE_BYTES, detail, "make room: checkpoints need some GiB")


def check_packages(config: SpadeConfig) -> Iterator[Check]:
    """Whether the optional packages that the settings ask for are installed."""
    wanted: dict[str, tuple[str, str]] = {}
    for tracker in config.report_to or []:
        if tracker in _TRACKERS:
            wanted[_TRACKERS[tracker]] = (f"report_to {tracker}", f"pip install {_TRACKERS[tracker]}")
    if config.use_vllm and config.vllm_mode == "colocate":
        wanted["vllm"] = ("use_vllm", "pip install 'spade-envs[vllm]'")
    if config.deepspeed:
        wanted["deepspeed"] = ("deepspeed", "pip install deepspeed")
    if config.load_in_4bit:
        wanted["bitsandbytes"] = ("load_in_4bit", "pip install bitsandbytes")
    for package, (why, remedy) in wanted.items():
        found = importlib.util.find_spec(package) is not None
        yield Check(f"package {package}", found, f"for {why}" if found else f"not installed, for {why}", remedy)


def check_server(config: SpadeConfig) -> Iterator[Check]:
    """Whether a configured vLLM server answers."""
    if not config.use_vllm or config.vllm_mode != "server":
        return
    import httpx

    address = config.vllm_server_base_url or f"http://{config.vllm_server_host}:{config.vllm_server_port}"
    remedy = f"start it (trl vllm-serve --model {config.model}), or correct vllm_server_base_url"
    try:
        answer = httpx.get(f"{address.rstrip('/')}/health/", timeout=_SERVER_SECONDS, follow_redirects=True)
    except httpx.HTTPError as error:
        yield Check("vLLM server", False, f"{address} does not answer: {error}", remedy)
    else:
        ok = answer.status_code == httpx.codes.OK
        yield Check("vLLM server", ok, f"{address} answers {answer.status_code}", remedy)


def check_author(config: SpadeConfig) -> Iterator[Check]:
    """Whether another model that writes the programs can be had."""
    if not config.designer_model:
        return
    from spade_envs.models import ModelError, check_spec

    name = config.designer_model
    try:
        check_spec(name)
    except ModelError as error:
        yield Check("designer model", False, str(error), "correct designer_model")
        return
    kind, _, rest = name.partition(":")
    if kind != "openai":
        known = rest or name
        yield check_model(known)[0]._replace(name="designer model")
        return
    address = os.environ.get("OPENAI_BASE_URL", "")
    if not address:
        keyed = bool(os.environ.get("OPENAI_API_KEY"))
        detail = f"{name} at OpenAI's own endpoint" + ("" if keyed else ", without a key")
        yield Check("designer model", keyed, detail, "set OPENAI_BASE_URL to the endpoint, or OPENAI_API_KEY")
        return
    import httpx

    try:
        httpx.get(f"{address.rstrip('/')}/models", timeout=_SERVER_SECONDS)
    except httpx.HTTPError as error:
        detail = f"{address} does not answer: {error}"
        yield Check("designer model", False, detail, "start the endpoint, or correct OPENAI_BASE_URL")
    else:
        yield Check("designer model", True, f"{rest} at {address}")

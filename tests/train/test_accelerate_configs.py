"""The launch files for accelerate: read by accelerate itself, and turned into the environment of a process."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

FOLDER = Path(__file__).parents[2] / "examples" / "accelerate"
FILES = sorted(FOLDER.glob("*.yaml"))


def _arguments(path: Path, *more: str) -> Any:
    parser = launch_command_parser()
    arguments = parser.parse_args(["--config_file", str(path), "--main_process_port", "0", *more, "spade", "train"])
    return _validate_launch_command(arguments)[0]


def test_there_is_one_for_each_kind_of_machine() -> None:
    assert [path.stem for path in FILES] == ["fsdp2_8gpu", "one_gpu", "two_nodes_servers", "zero3_8gpu"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_accelerate_reads_it(path: Path) -> None:
    config = load_config_from_file(str(path))
    assert isinstance(config, ClusterConfig)
    assert config.mixed_precision == "bf16"
    assert config.num_processes == {"one_gpu": 1, "two_nodes_servers": 16}.get(path.stem, 8)
    options = {action.dest for action in launch_command_parser()._actions}
    for section in ("fsdp_config", "deepspeed_config"):
        for name in yaml.safe_load(path.read_text()).get(section, {}):
            assert name in options, f"{name} is no option of accelerate launch"
    known = {field.name for field in dataclasses.fields(ClusterConfig)}
    assert set(yaml.safe_load(path.read_text())) <= known


@pytest.mark.parametrize("name", ["fsdp2_8gpu", "two_nodes_servers"])
def test_fsdp_files_make_an_fsdp2_plugin(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)  # accelerate asks before it allows bfloat16
    monkeypatch.setattr("accelerate.commands.launch.is_bf16_available", lambda *_: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    environment = prepare_multi_gpu_env(_arguments(FOLDER / f"{name}.yaml"))
    assert environment["ACCELERATE_USE_FSDP"] == "true"
    for variable, value in environment.items():
        if variable.startswith(("FSDP_", "ACCELERATE_USE_FSDP")):
            monkeypatch.setenv(variable, value)
    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert plugin.cpu_ram_efficient_loading
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"


def test_deepspeed_file_makes_a_zero3_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accelerate.commands.launch.is_bf16_available", lambda *_: True)
    arguments = _arguments(FOLDER / "zero3_8gpu.yaml")
    arguments.deepspeed_fields_from_accelerate_config = ""  # set by the command just before
    _, environment = prepare_deepspeed_cmd_env(arguments)
    assert environment["ACCELERATE_USE_DEEPSPEED"] == "true"
    assert environment["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == "3"
    assert environment["ACCELERATE_DEEPSPEED_ZERO3_INIT"] == "true"

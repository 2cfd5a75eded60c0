"""What a run pushes to a server that stands for the Hub, and what it never sends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tinyrun

sys.path.insert(0, str(Path(__file__).parents[1] / "pools"))
from hub_server import TOKEN, FakeHub, serving

from spade_train.callbacks.hub import HubCallback
from spade_train.config import ConfigError, SpadeConfig
from spade_train.recipe import run

pytest.importorskip("huggingface_hub")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with serving() as running:
        yield running


def _train(folder: Path, endpoint: str, **changes: object) -> SpadeConfig:
    """Two steps, a checkpoint after each, pushed to ``endpoint``."""
    config = tinyrun.tiny_config(
        folder, 2, save_steps=1, push_to_hub=True, hub_model_id="me/adapter", documents=2, **changes
    )
    tokenizer = tinyrun.tiny_tokenizer()
    session, policy = tinyrun.tiny_session(config, tokenizer), (tinyrun.tiny_model(tokenizer), tokenizer)
    for callback in (callbacks := session.callbacks()):
        if isinstance(callback, HubCallback):
            callback._endpoint = endpoint
    session.callbacks = lambda: callbacks  # type: ignore[method-assign]
    run(config, policy=policy, session=session)
    return config


def test_adapter_card_and_environments(
    server: FakeHub, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    folder = tmp_path / "run"
    _train(folder, server.address, hub_memory=True)
    stored = server.models["me/adapter"]
    assert stored["adapter_model.safetensors"] == (folder / "adapter" / "adapter_model.safetensors").read_bytes()
    assert {"adapter_config.json", "tokenizer.json", "chat_template.jinja", "README.md"} <= set(stored)
    assert not {name for name in stored if name.startswith(("optimizer", "training_args", "rng", "trainer", "spade"))}
    card = stored["README.md"].decode()
    assert card.startswith(("---\nlibrary_name: peft", "---\nbase_model:"))
    assert "after 2 cycles" in card
    assert "| valid designs |" in card
    assert server.private == {"me/adapter": True, "me/adapter-environments": True}
    assert any(name.endswith(".parquet") for name in server.datasets["me/adapter-environments"])
    assert server.commits[:2] == ["Adapter after 1 cycles", "Adapter after 2 cycles"]
    assert "environments of run run" in server.commits[2]
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert TOKEN not in "".join(capfd.readouterr()) + caplog.text
    assert TOKEN.encode() not in written


def test_only_at_the_end(server: FakeHub, tmp_path: Path) -> None:
    _train(tmp_path / "run", server.address, hub_strategy="end", hub_private_repo=False)
    assert server.commits == ["Adapter after 2 cycles"]
    assert server.private == {"me/adapter": False}
    assert server.datasets == {}


def test_a_push_that_fails_does_not_end_the_run(
    server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "y" * 34)
    _train(tmp_path / "run", server.address)
    assert (tmp_path / "run" / "adapter").is_dir()
    assert server.models == {}
    assert "model me/adapter cannot be pushed" in caplog.text
    assert "the run goes on" in caplog.text
    assert "hf_yyy" not in caplog.text


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hub_model_id as OWNER/NAME"):
        tinyrun.tiny_config(tmp_path, 1, push_to_hub=True)
    with pytest.raises(ConfigError, match="hf auth login"):
        tinyrun.tiny_config(tmp_path, 1, hub_token="hf_secret")
    with pytest.raises(ConfigError, match="needs push_to_hub"):
        tinyrun.tiny_config(tmp_path, 1, hub_memory=True)
    with pytest.raises(ConfigError, match="writes none"):
        tinyrun.tiny_config(tmp_path, 1, push_to_hub=True, hub_model_id="me/x", save_strategy="no")
    config = tinyrun.tiny_config(tmp_path, 1, push_to_hub=True, hub_model_id="me/x")
    assert config.hub_push
    assert not config.push_to_hub, "the trainer's own push would upload the memory and the transcripts"

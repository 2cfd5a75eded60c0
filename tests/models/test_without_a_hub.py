"""Where the Hub cannot be reached, one line says so and what to do; nothing is retried in vain or aloud."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from spade_envs.hub_access import hub_or_cache, hub_unreachable
from spade_envs.models import ModelError
from spade_envs.models.pretrained import check_obtainable, from_pretrained

constants = pytest.importorskip("huggingface_hub.constants")
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Hub at a port where nobody listens, and an empty cache."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", NOWHERE)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


class Factory:
    """Stands in transformers' place: has nothing on the disk, and counts how often it is asked to go further."""

    asked = 0

    @classmethod
    def from_pretrained(cls, source: str, *, local_files_only: bool = False, **_: object) -> str:
        if local_files_only:
            raise OSError(f"{source} is not here")
        cls.asked += 1
        return source


def test_a_model_says_where_it_was_looked_for_and_what_to_do() -> None:
    with pytest.raises(ModelError) as caught:
        from_pretrained(Factory, "some/model")
    for part in ("'some/model'", "no directory", "cache", f"{NOWHERE} does not answer", "openai:NAME", "nano",
                 "hf download some/model", "HF_HOME"):  # fmt: skip
        assert part in str(caught.value)
    assert "Errno" not in str(caught.value)
    assert Factory.asked == 0
    with pytest.raises(ModelError, match="hf download some/model"):
        check_obtainable("some/model")


def test_a_path_is_not_taken_for_a_name_on_the_hub(tmp_path: Path) -> None:
    for source in ("/nowhere/at/all", "./model", "~/model", "a/b/c"):
        with pytest.raises(ModelError, match=r"is no directory, and no name of a model on the Hub \(OWNER/NAME\)"):
            from_pretrained(Factory, source)
    check_obtainable(str(tmp_path))  # a directory needs no Hub


def test_a_model_that_is_half_in_the_cache_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: "config.json")
    with pytest.raises(ModelError, match=r"not whole in the local Hugging Face cache.*some/model is not here"):
        from_pretrained(Factory, "some/model")
    check_obtainable("some/model")


def test_libraries_are_offline_and_silent_while_the_hub_is_gone() -> None:
    library = logging.getLogger("huggingface_hub")
    before = library.level
    with hub_or_cache() as why:
        assert NOWHERE in why
        assert constants.HF_HUB_OFFLINE
        assert not logging.getLogger("huggingface_hub.utils._http").isEnabledFor(logging.WARNING)
    assert not constants.HF_HUB_OFFLINE
    assert library.level == before


def test_offline_mode_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in hub_unreachable()
    with hub_or_cache():
        pass
    assert constants.HF_HUB_OFFLINE  # it was the user's own

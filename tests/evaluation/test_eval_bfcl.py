"""BFCL by its official package: what it makes of its own ground truth, and of silence. Slow to install, so it is only
run where `spade eval --suite bfcl-v4` has made the package's environment already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from endpoint_server import Server

from evaluation.bfcl_replay import Replay
from spade_train.evaluation.external.bfcl import CATEGORIES, BfclRun, categories_of
from spade_train.evaluation.external.environment import find_environment
from spade_train.evaluation.external.run import ExternalOptions, run_external
from spade_train.evaluation.identity import model_identity
from spade_train.evaluation.protocol import EvaluationError, published_protocol
from spade_train.evaluation.question import Question

PACKAGE = str(published_protocol("bfcl-v4").options["package"])
INSTALLED = find_environment(PACKAGE)
needs_package = pytest.mark.skipif(INSTALLED is None, reason=f"no environment of {PACKAGE}: run spade eval -s bfcl-v4")


def _data() -> Path:
    assert INSTALLED is not None
    return next(INSTALLED.parent.parent.glob("lib/python*/site-packages/bfcl_eval/data"))


def test_categories_are_named_with_the_suite() -> None:
    assert categories_of("bfcl-v4") == CATEGORIES
    assert categories_of("bfcl-v4:multi_turn_base,multi_turn_miss_func") == CATEGORIES[:2]
    with pytest.raises(EvaluationError, match="no category 'simple'"):
        categories_of("bfcl-v4:simple")


@needs_package
@pytest.mark.parametrize("right", [True, False])
def test_ground_truth_scores_all_and_silence_nothing(
    right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = Server()
    replay = Replay(_data(), "multi_turn_base", right=right)
    server.answers = [replay]
    options = ExternalOptions("openai:replay", base_url=server.url, limit=2, concurrency=2)
    identity = model_identity(options.model, None, server.url)
    name = "bfcl-v4:multi_turn_base"
    result, folder, new = run_external(name, options, identity, tmp_path, "replay", None, None)
    assert (result.score, result.questions, new) == (float(right), 2, 2)
    asked = replay.asked
    (folder / "result.json").unlink()
    again, _, new = run_external(name, options, identity, tmp_path, "replay", None, None)
    assert (again.scores, new, replay.asked) == (result.scores, 0, asked)
    server.close()


def test_a_dialogue_that_broke_off_is_held_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spade_train.evaluation.external.bfcl.make_environment", lambda *_: Path("python"))
    run = BfclRun(tmp_path, published_protocol("bfcl-v4"), CATEGORIES)
    path = tmp_path / "bfcl" / "result" / "spade-model" / "multi_turn" / "BFCL_v4_multi_turn_base_result.json"
    path.parent.mkdir(parents=True)
    rows = [
        {"id": "multi_turn_base_0", "result": [[]]},
        {"id": "multi_turn_base_1", "result": "Error during inference: gone"},
        {"id": "multi_turn_base_3", "result": "Error during inference: Error code: 400 - the prompt has 9000 tokens"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"id": "multi_turn_base_2", "res')
    kept = ["multi_turn_base_0", "multi_turn_base_3"]
    assert run.done() == set(kept)
    run._drop_failures()
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == kept
    (answer,) = run.answers([Question("multi_turn_base_3", group="multi_turn_base")])
    assert (answer.score, answer.finish, answer.error) == (0.0, "refused", "")

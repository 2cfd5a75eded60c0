"""The pipelines on two Ray nodes of this machine, one of which is killed in the middle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="needs spade-envs[ray]")

from spade_envs.calibration import Calibration, CalibrationConfig, calibrate  # noqa: E402
from spade_envs.cluster import (  # noqa: E402
    ClusterError,
    ClusterModel,
    ClusterValidator,
    Workers,
    calibrate_on_cluster,
    connect,
)
from spade_envs.cluster.workers import shards  # noqa: E402
from spade_envs.corpus import Corpus  # noqa: E402
from spade_envs.designer import Designer, PromptSet  # noqa: E402
from spade_envs.designer.generate import generate  # noqa: E402
from spade_envs.episode import PlayConfig  # noqa: E402
from spade_envs.memory import Memory  # noqa: E402
from spade_envs.models import load_model  # noqa: E402
from spade_envs.models.base import ModelError, Sampling  # noqa: E402
from spade_envs.players import scripted_player  # noqa: E402
from spade_envs.record import EnvironmentRecord  # noqa: E402
from spade_envs.sandbox import Sandbox  # noqa: E402

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test

COIN = """
class Coin{number}Env(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.side = self.rng.choice(["yes", "no"])
        return "yes or no?", {{}}

    def step(self, action):
        return "", float(self.answer(action) == self.side), True, False, {{}}
"""


class Nodes:
    """A head and a second node that can be killed and that comes back."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        self._second = self._cluster.add_node(num_cpus=2)
        connect(self._cluster.address)

    def kill(self) -> None:
        self._cluster.remove_node(self._second, allow_graceful=False)
        self._second = self._cluster.add_node(num_cpus=2)

    def close(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    made.close()


class Counter:
    """An actor that can lose its process, once or always."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def square(self, number: int) -> int:
        mark = self._folder / str(number)
        if number == 3 and not mark.exists():
            mark.touch()
            os._exit(1)
        return number * number

    def die(self, _: Any) -> None:
        os._exit(1)

    def complain(self, what: str) -> None:
        raise ModelError(what)


def test_work_of_a_lost_worker_is_done_again_and_in_order(nodes: Nodes, tmp_path: Path) -> None:
    workers = Workers(Counter, 2, (str(tmp_path),), cpus=0.5)
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(12):
            taken.append(number)
            yield number

    results = workers.map("square", items())
    assert next(results) == 0
    assert len(taken) <= 5  # what the workers have room for, and no more
    assert list(results) == [number * number for number in range(1, 12)]
    workers.close()


def test_work_that_kills_every_worker_ends_with_an_error(nodes: Nodes, tmp_path: Path) -> None:
    workers = Workers(Counter, 1, (str(tmp_path),), cpus=0.5, repeats=1)
    with pytest.raises(ClusterError, match="lost too often"):
        list(workers.map("die", [1]))
    workers.close()


def test_errors_of_the_machinery_keep_their_kind(nodes: Nodes, tmp_path: Path) -> None:
    workers = Workers(Counter, 1, (str(tmp_path),), cpus=0.5)
    with pytest.raises(ModelError, match="no such model"):
        list(workers.map("complain", ["no such model"]))
    workers.close()


def test_calibration_is_the_same_as_here_though_a_node_dies(nodes: Nodes, sandbox: Sandbox) -> None:
    records = [EnvironmentRecord.create(COIN.format(number=n), f"Coin{n}Env") for n in range(12)]
    config = CalibrationConfig(plays=8, precision=0.0, chunk=2)
    player = scripted_player("know-nothing", sandbox=sandbox, seed=3)
    here = [result.to_dict() for result in calibrate(player, records, sandbox, PlayConfig(), config)]
    parts = [(records[start : start + 2], PlayConfig(), config, None, False) for start in range(0, 12, 2)]
    there: list[Calibration] = []
    stream = calibrate_on_cluster("know-nothing", parts, workers=2, isolation="static", seed=3, cpus=1.0)
    for number, results in enumerate(stream):
        there += results
        if number == 1:
            nodes.kill()
    assert [result.to_dict() for result in there] == here


def test_generation_is_the_same_as_here_though_a_node_dies(nodes: Nodes, sandbox: Sandbox, tmp_path: Path) -> None:
    model, prompts, corpus = load_model("nano"), PromptSet.load("nano"), Corpus.open("builtin:nano")

    def run(folder: str, validator: ClusterValidator | None) -> list[str]:
        with Memory.open(tmp_path / folder) as memory:
            designer = Designer(prompts, memory, sandbox, generator="nano", validator=validator)
            stored = 0

            def note(_: Any) -> None:
                nonlocal stored
                stored += 1
                if stored == 2 and validator is not None:
                    nodes.kill()

            generate(model, corpus, designer, memory, count=12, seed=5, round_size=8, on_attempt=note)
            return [record.id for record in memory.records()]

    validator = ClusterValidator(2, isolation="static", config=Designer(prompts, None, sandbox).validation)
    there = run("there", validator)
    validator.close()
    assert there == run("here", None)
    model.close()


def test_a_model_of_actors_answers_the_same_whatever_their_number(nodes: Nodes) -> None:
    asked = [[{"role": "user", "content": f"Take 2 words, reverse them: hen fox {n}"}] for n in range(20)]
    sampling = Sampling(max_tokens=8, temperature=1.0, seed=2)
    replies = []
    for workers in (1, 2):
        model = ClusterModel("nano", workers, cpus=0.5)
        assert model.name == "nano"
        replies.append(model.complete(asked, sampling))
        model.close()
    assert replies[0] == replies[1]
    with pytest.raises(ModelError, match="is no directory"):
        ClusterModel("hf:/nowhere/at/all", 1, cpus=0.5)


def test_shards_cover_everything_once() -> None:
    assert [list(part) for part in shards(5, 2)] == [[0, 1], [2, 3], [4]]
    assert shards(0, 2) == []


def test_a_cluster_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ClusterError, match="ray start --head"):
        connect("256.0.0.1:1")

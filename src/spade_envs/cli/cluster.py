"""What the commands that can run on a Ray cluster share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spade_envs.cluster import ClusterModel, ClusterValidator
    from spade_envs.sandbox.types import IsolationLevel
    from spade_envs.validation import ValidationConfig

RayOption = Annotated[bool, typer.Option("--ray", help="Run on a Ray cluster (pip install 'spade-envs[ray]').")]
RayAddressOption = Annotated[
    str | None, typer.Option(help="Of the cluster. Default: this machine's; one is started if there is none.")
]
RayWorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Actors of each kind on the cluster. Default: one to two CPUs.")
]
RayGpusOption = Annotated[float, typer.Option(min=0, help="GPUs of each model that runs on the cluster.")]
_CPUS = 0.5
"""CPUs that an actor asks for: models and validators take turns, so two of them share one."""


def workers(address: str | None, asked: int | None) -> int:
    """Join the cluster and return how many actors of a kind to start."""
    from spade_envs.cluster import connect
    from spade_envs.cluster.workers import cluster_cpus

    connect(address)
    return asked or max(1, cluster_cpus() // 2)


def model_on_cluster(spec: str, address: str | None, asked: int | None, gpus: float) -> ClusterModel:
    """Start actors that hold the model that ``spec`` names."""
    from spade_envs.cluster import ClusterModel

    return ClusterModel(spec, workers(address, asked), cpus=_CPUS, gpus=gpus)


def validators(
    address: str | None, asked: int | None, isolation: IsolationLevel, config: ValidationConfig
) -> ClusterValidator:
    """Start actors that validate."""
    from spade_envs.cluster import ClusterValidator

    return ClusterValidator(workers(address, asked), isolation=isolation, config=config, cpus=_CPUS)

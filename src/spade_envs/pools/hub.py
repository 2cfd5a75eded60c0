"""Pools on the Hugging Face Hub: fetching a dataset, and pushing an export.

The token is the one of ``hf auth login`` or ``HF_TOKEN``; it is read by ``huggingface_hub`` and neither taken nor
shown here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from spade_envs.hub_access import hub_or_cache
from spade_envs.pools.candidate import PoolError

logger = logging.getLogger(__name__)

HUB = "hf:"
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)
_WANTED = ("*.py", "*.json", "*.jsonl", "*.ndjson", "*.csv", "*.parquet", "*SHA256SUMS*", "*sums.txt", "README.md")


def repository(name: str) -> str:
    """Return ``owner/name`` of ``owner/name`` or ``hf:owner/name``.

    Raises:
        PoolError: if it is neither.
    """
    repo = name.removeprefix(HUB)
    if not _REPO.match(repo):
        raise PoolError(f"expected OWNER/NAME of a dataset on the Hub, got {name!r}")
    return repo


def cache_folder(name: str) -> Path:
    """Return where a dataset is kept by default: ``pools/owner/name`` in the platform's cache folder for spade."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("spade")) / "pools" / repository(name)


def fetch(name: str, folder: Path, *, revision: str | None = None, endpoint: str | None = None) -> Path:
    """Download the programs, tables and card of a dataset into ``folder`` and return it.

    What is there already and unchanged is not downloaded again, and serves where the Hub cannot be reached.

    Raises:
        PoolError: if the dataset is not there, may not be read, or the Hub cannot be reached.
    """
    repo = repository(name)
    elsewhere = f"run `hf download {repo} --repo-type dataset --local-dir FOLDER` where it can, and import that folder"
    with _explained(f"dataset {repo} cannot be fetched", endpoint, elsewhere) as unreachable:
        api = _api(endpoint)
        api.snapshot_download(
            repo, repo_type="dataset", revision=revision, local_dir=folder, allow_patterns=list(_WANTED)
        )
    if unreachable:
        logger.warning("the Hub cannot be reached (%s): dataset %s as it was fetched before", unreachable, repo)
    return folder


def push(
    folder: Path,
    name: str,
    *,
    private: bool = True,
    message: str = "Export of spade-envs",
    endpoint: str | None = None,
    kind: Literal["dataset", "model"] = "dataset",
    only: Sequence[str] | None = None,
) -> str:
    """Upload an export as a dataset, or a model, making it if it is not there; return its address.

    Files of an earlier push of a dataset that are not in ``folder`` are removed in the same commit. A repository
    that is there keeps its visibility.

    Args:
        folder: what to upload.
        name: ``owner/name``.
        private: whether a new repository is private.
        message: of the commit.
        endpoint: address of another Hub.
        kind: of the repository.
        only: patterns of file names; everything if None.

    Raises:
        PoolError: if the Hub refuses it or cannot be reached.
    """
    repo = repository(name)
    elsewhere = f"push where it can: `hf upload {repo} FOLDER --repo-type {kind}` does it for a folder"
    with _explained(f"{kind} {repo} cannot be pushed", endpoint, elsewhere):
        api = _api(endpoint)
        api.create_repo(repo, repo_type=kind, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repo,
            repo_type=kind,
            folder_path=folder,
            commit_message=message,
            allow_patterns=None if only is None else list(only),
            delete_patterns=["*.py", "*.parquet", "manifest.json"] if kind == "dataset" else None,
        )
    return f"{str(api.endpoint).rstrip('/')}/{'datasets/' * (kind == 'dataset')}{repo}"


def _api(endpoint: str | None) -> Any:
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise PoolError("the Hub needs huggingface_hub: pip install 'spade-envs[hub]'") from error
    return HfApi(endpoint=endpoint, library_name="spade-envs")


@contextmanager
def _explained(what: str, endpoint: str | None, elsewhere: str) -> Iterator[str]:
    """Turn the errors of huggingface_hub and of the network into one line that says what to do.

    Gives why the Hub cannot be reached, "" if it can: what was fetched before may do.

    Args:
        what: fails.
        endpoint: address of another Hub.
        elsewhere: what to do where this Hub cannot be reached.
    """
    try:
        from huggingface_hub import errors
    except ImportError:
        yield ""  # _api says what is missing
        return
    try:
        with hub_or_cache(endpoint) as unreachable:
            try:
                yield unreachable
            except Exception as error:
                if unreachable:
                    raise PoolError(f"{what}: the Hub cannot be reached ({unreachable}); {elsewhere}") from error
                raise
    except (errors.RepositoryNotFoundError, errors.GatedRepoError, errors.LocalTokenNotFoundError) as error:
        raise PoolError(
            f"{what}: it is not there, or needs a login with access to it (hf auth login, or HF_TOKEN)"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise PoolError(f"{what}: it has no such revision") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        advice = ": log in with write access (hf auth login, or HF_TOKEN)" if status in (401, 403) else ""
        raise PoolError(f"{what}: the Hub answered {status}{advice}") from error
    except PoolError:
        raise
    except Exception as error:  # of the network: huggingface_hub raises those of the HTTP library of its version
        words = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise PoolError(f"{what}: {words}") from error

"""The adapter, and on request the environments, on the Hugging Face Hub."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from spade_envs.pools import ExportFilter, PoolError, export_memory, hub
from spade_train.callbacks.checkpoints import last_checkpoint
from spade_train.callbacks.metrics import read_metrics
from spade_train.card import adapter_card

if TYPE_CHECKING:
    from spade_train.selfplay import SelfPlay

logger = logging.getLogger(__name__)

_FILES = ("adapter_*", "tokenizer*", "special_tokens_map.json", "chat_template.jinja", "vocab*", "merges.txt")
"""Of a checkpoint; never the optimiser, the arguments or the state of the run."""


class HubCallback(TrainerCallback):  # type: ignore[misc]
    """Pushes from rank 0: the adapter with every checkpoint (``hub_strategy: end``: at the end), the memory at the end.

    Only adapter, tokenizer and card leave the machine. A push that fails is told and does not stop the run. The token
    is the one of ``hf auth login`` or ``HF_TOKEN``.

    Args:
        session: the run.
        endpoint: address of another Hub.
    """

    def __init__(self, session: SelfPlay, *, endpoint: str | None = None) -> None:
        self._session, self._endpoint = session, endpoint
        self._pushed = -1  # step of the adapter that was pushed last

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Push the adapter of the checkpoint."""
        if args.process_index == 0 and str(getattr(args.hub_strategy, "value", args.hub_strategy)) != "end":
            self._push_adapter(Path(args.output_dir) / f"checkpoint-{state.global_step}", state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Push what has not been pushed."""
        if args.process_index != 0:
            return
        checkpoint = last_checkpoint(args.output_dir)
        if checkpoint is not None and self._pushed != state.global_step:
            self._push_adapter(checkpoint, state.global_step)
        if self._session.config.hub_memory:
            self._push_memory()

    def _push_adapter(self, checkpoint: Path, step: int) -> None:
        config = self._session.config
        with tempfile.TemporaryDirectory(prefix="spade-push-") as place:
            folder = Path(place)
            for pattern in _FILES:
                for file in checkpoint.glob(pattern):
                    shutil.copyfile(file, folder / file.name)
            last = read_metrics(config.output_dir)[-1:] or [{}]
            (folder / "README.md").write_text(adapter_card(config, step, last[0]), encoding="utf-8")
            if self._push(folder, str(config.hub_model_id), f"Adapter after {step} cycles", "model"):
                self._pushed = step

    def _push_memory(self) -> None:
        config, name = self._session.config, f"{self._session.config.hub_model_id}-environments"
        with tempfile.TemporaryDirectory(prefix="spade-push-") as place:
            out = Path(place) / "environments"
            try:
                written = export_memory(self._session.memory, out, filters=ExportFilter(run=config.run), name=name)
            except PoolError as error:
                logger.warning("the environments are not pushed: %s", error)
                return
            self._push(out, name, f"{written.environments} environments of run {config.run}", "dataset")

    def _push(self, folder: Path, name: str, message: str, kind: Any) -> bool:
        private = self._session.config.hub_private_repo is not False
        try:
            address = hub.push(folder, name, private=private, message=message, endpoint=self._endpoint, kind=kind)
        except PoolError as error:
            logger.warning("%s; the run goes on, and everything is in %s", error, self._session.config.output_dir)
            return False
        logger.info("pushed to %s", address)
        return True

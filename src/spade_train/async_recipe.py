"""From a recipe to TRL's asynchronous trainer; ``examples/async_selfplay.py`` calls it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from spade_train.async_adapter import SelfPlayWorker, async_config, sampling_of
from spade_train.callbacks import MetricsCallback
from spade_train.lora.targets import adapter_config
from spade_train.recipe import policy_source
from spade_train.selfplay import SelfPlay
from spade_train.tokens import prepare_tokenizer

if TYPE_CHECKING:
    from trl.experimental.async_grpo import AsyncGRPOTrainer

    from spade_train.config import SpadeConfig


def build_async_trainer(
    config: SpadeConfig,
    url: str,
    *,
    tokenizer: Any = None,
    session: SelfPlay | None = None,
    weight_transfer: Any = None,
    **changes: Any,
) -> AsyncGRPOTrainer:
    """Put an ``AsyncGRPOTrainer`` together whose samples are cycles of self-play.

    The update needs a GPU that runs flash attention 3. Call it on every rank; cycles run on rank 0.

    Args:
        config: the recipe. One update takes about as many rows as a cycle has.
        url: of a ``vllm serve`` with ``--logprobs-mode processed_logprobs``; with ``--enable-lora`` it gets adapters,
            else merged weights.
        tokenizer: if it is loaded already.
        session: what the run holds besides, if it is open already.
        weight_transfer: how weights reach the server, instead of TRL's own ways.
        changes: fields of ``AsyncGRPOConfig``, such as ``max_staleness``, ``weight_sync_steps``, ``token_budget``.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from trl.experimental.async_grpo import AsyncGRPOTrainer

    from spade_envs.models.pretrained import from_pretrained

    args, source = async_config(config, vllm_server_base_url=url, **changes), policy_source(config.model)
    if tokenizer is None:
        tokenizer = from_pretrained(AutoTokenizer, source, padding_side="left")
        prepare_tokenizer(tokenizer, config.chat_template_kwargs, config.thinking)
    shapes = from_pretrained(AutoConfig, source)
    if session is None:
        context = int(getattr(shapes.get_text_config(), "max_position_embeddings", 0))
        session = SelfPlay.from_config(config, tokenizer, context_tokens=context)
    dataset, worker = session.dataset(), None
    if args.process_index == 0:
        worker = SelfPlayWorker(session, url, sampling_of(config), waiting=config.rows_needed)
    else:
        session.close()
    with torch.device("meta"):
        bare = AutoModelForCausalLM.from_config(shapes)  # says which modules there are
    adapter = adapter_config(
        bare, targets=config.lora_targets, r=config.lora_r, alpha=config.lora_alpha, rslora=config.lora_rslora
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*experimental.*")
        return AsyncGRPOTrainer(
            model=source,
            args=args,
            train_dataset=dataset,
            processing_class=tokenizer,
            callbacks=[MetricsCallback()],
            peft_config=adapter,
            rollout_worker=worker,
            weight_transfer=weight_transfer,
        )

"""A tiny random Qwen3 and a byte-level BPE tokenizer with TRL's Qwen3 chat templates: no download, no training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
THINK = ["<think>", "</think>"]


def tiny_tokenizer(template: str = "qwen3_training.jinja", vocab: int = 400) -> Any:
    """Train a small BPE on Python text and give it a chat template of TRL's."""
    text = [path.read_text() for path in sorted(Path(trl.__file__).parent.glob("trainer/grpo_config.py"))]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=SPECIAL + THINK, initial_alphabet=alphabet)
    backend.train_from_iterator(text, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = (TEMPLATES / template).read_text()
    return tokenizer


def tiny_model(tokenizer: Any, hidden: int = 32, layers: int = 2) -> Any:
    """A random Qwen3; the wide initialisation makes a LoRA step visible."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=4096,
        initializer_range=0.1,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)

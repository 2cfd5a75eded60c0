"""A reward of your own for the designer: here, long programs are paid a little less.

Rows reach the reward function with their raw reward; what it changes there is normalised and weighted as always.

    python examples/custom_reward.py runs/custom 3
"""

import sys
from collections.abc import Sequence
from typing import Any

from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, ProgressCallback
from transformers.utils import logging
from trl import GRPOTrainer

from spade_envs.models.transformers import NANO_FOLDER
from spade_train.config import SpadeConfig
from spade_train.display import training_display
from spade_train.rows import Row
from spade_train.selfplay import SelfPlay

PRICE = 0.001  # of one token of a program


def main(output: str, cycles: int) -> None:
    """Train ``cycles`` cycles."""
    logging.disable_progress_bar()  # of loading weights
    tokenizer = AutoTokenizer.from_pretrained(NANO_FOLDER, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(NANO_FOLDER, dtype="float32")
    config = SpadeConfig(
        output_dir=output, max_steps=cycles, corpus="builtin:nano", prompts="nano", documents=2, designs=4, plays=4,
        per_device_train_batch_size=64, learning_rate=1e-3, use_cpu=True, bf16=False, gradient_checkpointing=False,
        threads=1,
    )  # fmt: skip
    with SelfPlay.from_config(config, tokenizer) as session, training_display(cycles) as display:

        def short_programs(*args: Any, spade_row: Sequence[Row], **columns: Any) -> list[float]:
            for row in spade_row:
                if row.role == "designer" and row.reward is not None:
                    row.reward -= PRICE * row.tokens
            return session.reward(*args, spade_row=spade_row, **columns)

        trainer = GRPOTrainer(
            model=model, args=config, processing_class=tokenizer, train_dataset=session.dataset(),
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
            rollout_func=session.rollout_func, reward_funcs=short_programs,
            callbacks=[*session.callbacks(), *display],
        )  # fmt: skip
        trainer.remove_callback(ProgressCallback)  # it prints all metrics of a cycle; they are in metrics.jsonl
        trainer.train()
        trainer.save_model(f"{output}/adapter")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/custom", int(sys.argv[2]) if len(sys.argv) > 2 else 3)

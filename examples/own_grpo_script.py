"""Self-play inside your own GRPO script: a stock ``trl.GRPOTrainer`` and four things from this package.

Run it on a CPU: ``python examples/own_grpo_script.py runs/own 3``. It trains the embedded nano model; put your own
model, tokenizer, corpus and prompt set in its place.
"""

import sys

from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, ProgressCallback
from transformers.utils import logging
from trl import GRPOTrainer

from spade_envs.models.transformers import NANO_FOLDER
from spade_train.config import SpadeConfig
from spade_train.display import training_display
from spade_train.selfplay import SelfPlay


def main(output: str, cycles: int) -> None:
    """Train ``cycles`` cycles and save the adapter."""
    logging.disable_progress_bar()  # of loading weights
    tokenizer = AutoTokenizer.from_pretrained(NANO_FOLDER, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(NANO_FOLDER, dtype="float32")
    config = SpadeConfig(  # a GRPOConfig with more fields
        output_dir=output,
        max_steps=cycles,
        corpus="builtin:nano",
        prompts="nano",
        documents=2,
        designs=4,
        plays=4,
        per_device_train_batch_size=64,
        learning_rate=1e-3,
        use_cpu=True,
        threads=1,  # in so small a model more of them mostly wait for each other
        bf16=False,
        gradient_checkpointing=False,
    )
    with SelfPlay.from_config(config, tokenizer) as session, training_display(cycles) as display:
        trainer = GRPOTrainer(
            model=model,
            args=config,
            processing_class=tokenizer,
            train_dataset=session.dataset(),
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
            rollout_func=session.rollout_func,  # designs, validates, plays plain and hinted
            reward_funcs=session.reward,  # advantages of both roles, normalised by role and group
            callbacks=[*session.callbacks(), *display],  # memory, checkpoints, metrics, transcripts
        )
        trainer.remove_callback(ProgressCallback)  # it prints all metrics of a cycle; they are in metrics.jsonl
        trainer.train()
        trainer.save_model(f"{output}/adapter")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/own", int(sys.argv[2]) if len(sys.argv) > 2 else 3)

"""Asynchronous self-play: cycles run beside the update, on a vLLM server of their own (docs/scaling.md).

    VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen3-4B --max-model-len 32768 \\
        --logprobs-mode processed_logprobs --enable-lora --max-lora-rank 16 --max-loras 5
    accelerate launch --config_file examples/accelerate/one_gpu.yaml examples/async_selfplay.py \\
        examples/recipes/games_4b.yaml http://localhost:8000

The update needs a GPU with flash attention 3 (TRL packs rows into trees). The server reads adapters from
``<output_dir>/.vllm_lora``: both must see that folder.
"""

import argparse

from spade_train.async_recipe import build_async_trainer
from spade_train.config import load_recipe


def main() -> None:
    """Train by a recipe and save the adapter to ``<output_dir>/adapter``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("server", help="URL of vllm serve")
    parser.add_argument(
        "--max-staleness", type=int, default=3, help="updates after which a row is not trained any more"
    )
    given = parser.parse_args()
    config = load_recipe(given.recipe, use_vllm=False)  # the worker asks the server, not the trainer
    trainer = build_async_trainer(config, given.server, max_staleness=given.max_staleness)
    trainer.train()
    trainer.save_model(f"{config.output_dir}/adapter")


if __name__ == "__main__":
    main()

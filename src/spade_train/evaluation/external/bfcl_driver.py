"""Runs inside the environment of ``bfcl-eval``: adds our endpoint to its list of models, then calls its own mains.

Nothing of the package is changed: models are added to this mapping by its contributors too (its CONTRIBUTING.md), and
the handler is its own one for OpenAI-compatible endpoints with native tool calls.

Usage: ``python bfcl_driver.py SETTINGS.json``.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING, ModelConfig
from bfcl_eval.model_handler.api_inference.openai_completion import OpenAICompletionsHandler

MODEL = "spade-model"  # without underscores: the package reads them as slashes
_SECONDS = 3600.0  # that a reply may take; the client's own ten minutes are too few for a small machine


class PatientHandler(OpenAICompletionsHandler):  # type: ignore[misc]
    """The package's handler, whose client waits for a slow endpoint instead of asking it a second time."""

    def _build_client_kwargs(self) -> dict[str, Any]:
        return {**super()._build_client_kwargs(), "timeout": _SECONDS}


def run(settings: dict[str, Any]) -> None:
    """Hold the dialogues that are missing and score all."""
    MODEL_CONFIG_MAPPING[MODEL] = ModelConfig(
        model_name=settings["model"],
        display_name=settings["model"],
        url="",
        org="",
        license="",
        model_handler=PatientHandler,
        input_price=None,
        output_price=None,
        is_fc_model=True,
        underscore_to_dot=True,
    )
    from bfcl_eval._llm_response_generation import main as generate
    from bfcl_eval.eval_checker.eval_runner import main as evaluate

    generate(
        SimpleNamespace(
            model=[MODEL],
            test_category=settings["categories"],
            temperature=settings["temperature"],
            include_input_log=False,
            exclude_state_log=True,
            num_gpus=1,
            num_threads=settings["threads"],
            gpu_memory_utilization=0.9,
            backend="vllm",
            skip_server_setup=True,
            local_model_path=None,
            result_dir="result",
            allow_overwrite=False,
            run_ids=settings["subset"],  # else results are appended, which a kill cannot harm
            enable_lora=False,
            max_lora_rank=None,
            lora_modules=None,
        )
    )
    evaluate([MODEL], settings["categories"], "result", "score", True)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        run(json.load(file))

"""A ``vllm.LLM`` that samples from a real tiny model, and takes adapters and weights the way vLLM does."""

from __future__ import annotations

import copy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
from trl.generation import vllm_generation

from spade_train.lora.serving import check_folder


class LoRARequest(SimpleNamespace):
    """Stands for ``vllm.lora.request.LoRARequest``."""

    def __init__(self, lora_name: str, lora_int_id: int, lora_path: str) -> None:
        super().__init__(lora_name=lora_name, lora_int_id=lora_int_id, lora_path=lora_path)


class LiveLLM:
    """Holds its own copy of the base model; log-probabilities are those of the distribution sampled from."""

    made: list[LiveLLM] = []  # noqa: RUF012  # as many as one test makes

    def __init__(self, model: str, max_model_len: int = 400, **arguments: Any) -> None:
        self.arguments = arguments
        self.base = AutoModelForCausalLM.from_pretrained(model).eval()
        self.adapters: dict[int, Any] = {}
        self.weights_taken = 0
        self._random = torch.Generator().manual_seed(0)
        runner = SimpleNamespace(model=SimpleNamespace(load_weights=self._load_weights))
        executor = SimpleNamespace(driver_worker=SimpleNamespace(model_runner=runner))
        lora = SimpleNamespace(**arguments) if arguments.get("enable_lora") else None
        self.llm_engine = SimpleNamespace(
            vllm_config=SimpleNamespace(lora_config=lora),
            model_config=SimpleNamespace(max_model_len=max_model_len),
            model_executor=executor,
            add_lora=self._add_lora,
            remove_lora=self.adapters.pop,
            add_request=self.generate,
        )
        LiveLLM.made.append(self)

    def generate(self, prompts: Any, *, sampling_params: Any, use_tqdm: bool, lora_request: Any = None) -> list[Any]:
        """Sample one completion for each prompt, under the adapter that the request names."""
        model = self.base if lora_request is None else self.adapters[lora_request.lora_int_id]
        return self._sample(model, [list(prompt["prompt_token_ids"]) for prompt in prompts], sampling_params)

    def reset_prefix_cache(self) -> None:
        """There is none."""

    def _sample(self, model: Any, prompts: list[list[int]], parameters: Any) -> list[Any]:
        end, width = model.config.eos_token_id, max(map(len, prompts))
        ids = torch.tensor([[end] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        outputs = [SimpleNamespace(token_ids=[], logprobs=[]) for _ in prompts]
        cache = None
        with torch.no_grad():
            for _ in range(parameters.max_tokens):
                places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                out = model(ids, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True)
                spread = torch.log_softmax(out.logits[:, -1].float() / parameters.temperature, -1)
                ids, cache = torch.multinomial(spread.exp(), 1, generator=self._random), out.past_key_values
                mask = torch.cat([mask, torch.ones_like(ids)], 1)
                for row, token in enumerate(ids[:, 0].tolist()):
                    if end not in outputs[row].token_ids:
                        outputs[row].token_ids.append(token)
                        found = SimpleNamespace(logprob=float(spread[row, token]), rank=1)
                        outputs[row].logprobs.append({token: found})
        return [SimpleNamespace(prompt_token_ids=prompt, outputs=[one]) for prompt, one in zip(prompts, outputs)]

    def _add_lora(self, request: Any) -> bool:
        check_folder(request.lora_path, max_rank=self.arguments["max_lora_rank"])
        self.adapters[request.lora_int_id] = PeftModel.from_pretrained(
            copy.deepcopy(self.base), request.lora_path
        ).eval()
        return True

    def _load_weights(self, weights: Any) -> None:
        own = dict(self.base.named_parameters())
        for name, value in weights:
            with torch.no_grad():
                own[name].copy_(value)
            self.weights_taken += 1


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make TRL take :class:`LiveLLM` for vLLM."""
    modules = {name: ModuleType(name) for name in ("vllm", "vllm.lora", "vllm.lora.request")}
    modules["vllm.lora.request"].LoRARequest = LoRARequest  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vllm_generation, "is_vllm_available", lambda *_, **__: True)
    monkeypatch.setattr(vllm_generation, "LLM", LiveLLM, raising=False)
    monkeypatch.setattr(vllm_generation, "SamplingParams", lambda **values: SimpleNamespace(**values), raising=False)
    monkeypatch.setattr(LiveLLM, "made", [])

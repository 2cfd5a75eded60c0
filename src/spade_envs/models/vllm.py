"""Models run in this process by vLLM: for many conversations at once on a GPU.

The chat template is applied here, so that a conversation that does not fit fails alone; vLLM gets token ids. Its
sampling takes nothing from the model's ``generation_config.json``: temperature and top-p are the caller's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spade_envs.models.base import Completion, Conversation, ModelError, Sampling, ToolSchemas
from spade_envs.models.chat_template import begun, render, takes_tools, too_long
from spade_envs.models.pretrained import check_obtainable


class VLLMModel:
    """A vLLM engine as a :class:`~spade_envs.models.base.ChatModel`; make it with :meth:`load`."""

    def __init__(self, engine: Any, sampling_class: Any, *, name: str, lora: Any = None) -> None:
        """Wrap an engine.

        Args:
            engine: a ``vllm.LLM``.
            sampling_class: ``vllm.SamplingParams``.
            name: for records and logs.
            lora: a ``LoRARequest`` that every call is to use.
        """
        self._engine, self._sampling_class, self._name, self._lora = engine, sampling_class, name, lora
        self._tokenizer = engine.get_tokenizer()
        if not getattr(self._tokenizer, "chat_template", None):
            raise ModelError(f"model {name}: its tokenizer has no chat template; use an instruction-tuned model")
        self._context = int(engine.llm_engine.model_config.max_model_len)

    @classmethod
    def load(
        cls,
        directory_or_id: str | Path,
        *,
        name: str | None = None,
        dtype: str | None = None,
        adapter: str | Path | None = None,
        seed: int = 0,
        **engine_options: Any,
    ) -> VLLMModel:
        """Start an engine.

        Args:
            directory_or_id: a directory with weights, configuration and tokenizer, or ``owner/name``.
            name: for records; by default the last part of ``directory_or_id``.
            dtype: "bfloat16", …; by default that of the weights.
            adapter: a directory with a LoRA adapter in PEFT's form.
            seed: of the engine.
            engine_options: further arguments of ``vllm.LLM``, e.g. ``tensor_parallel_size``.

        Raises:
            ModelError: if vLLM is missing or cannot start with this model here.
        """
        try:
            import vllm
        except ImportError as error:
            raise ModelError(f"this needs vLLM and a GPU ({error}); pip install 'spade-envs[vllm]'") from error
        check_obtainable(str(directory_or_id))
        options: dict[str, Any] = {
            "model": str(directory_or_id),
            "dtype": dtype or "auto",
            "seed": seed,
            "generation_config": "vllm",
            "enable_prefix_caching": True,
            **engine_options,
        }
        lora = None
        if adapter is not None:
            from vllm.lora.request import LoRARequest

            options["enable_lora"] = True
            lora = LoRARequest("adapter", 1, str(adapter))
        try:
            engine = vllm.LLM(**options)
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            raise ModelError(f"vLLM cannot start with {directory_or_id}: {said}") from error
        return cls(engine, vllm.SamplingParams, name=name or Path(str(directory_or_id)).name, lora=lora)

    @property
    def name(self) -> str:
        """The model's short name."""
        return self._name

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer, for whoever counts or cuts text by it."""
        return self._tokenizer

    @property
    def native_tools(self) -> bool:
        """Whether the chat template takes tools."""
        return takes_tools(self._tokenizer)

    def complete(
        self,
        conversations: Sequence[Conversation],
        sampling: Sampling,
        *,
        tools: Sequence[ToolSchemas] | None = None,
    ) -> list[Completion]:
        """Return one completion for each conversation, in order; see :class:`ToolModel`.

        Tools go through the chat template; calls come back in the text, in the template's own form.
        """
        if self._engine is None:
            raise ModelError(f"model {self._name} was closed")
        offered = tools or [()] * len(conversations)
        prompts = [render(self._tokenizer, self._name, *pair) for pair in zip(conversations, offered, strict=True)]
        fitting = [index for index, prompt in enumerate(prompts) if len(prompt) < self._context]
        completions = [
            Completion("", len(prompt), 0, "error", too_long(len(prompt), self._context)) for prompt in prompts
        ]
        outputs = self._engine.generate(
            [{"prompt_token_ids": prompts[index]} for index in fitting],
            sampling_params=[self._parameters(sampling, index, len(prompts[index])) for index in fitting],
            use_tqdm=False,
            **({"lora_request": self._lora} if self._lora is not None else {}),
        ) if fitting else []  # fmt: skip
        for index, output in zip(fitting, outputs, strict=True):
            reply = output.outputs[0]
            counts = len(prompts[index]), len(reply.token_ids)
            completions[index] = Completion(
                begun(self._tokenizer, prompts[index]) + reply.text,
                *counts,
                "length" if reply.finish_reason == "length" else "stop",
            )
        return completions

    def close(self) -> None:
        """Drop the engine and its memory."""
        self._engine = None

    def _parameters(self, sampling: Sampling, index: int, prompt_tokens: int) -> Any:
        return self._sampling_class(
            max_tokens=min(sampling.max_tokens, self._context - prompt_tokens),
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            # Replies to equal conversations differ, and do so again next time.
            seed=random.Random(f"{sampling.seed}/{index}").getrandbits(31),
        )

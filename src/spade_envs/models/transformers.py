"""Models run in this process by ``transformers``: a directory, a hub id, or the embedded nano model.

Sampling is by inverse transform: one uniform number for each conversation and step, drawn from a counter-based
generator keyed by (seed, index of the conversation). So a reply does not depend on what was asked before, nor on
which other conversations share its batch (but for rounding), and a CPU and a GPU use the same numbers.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spade_envs.models.base import Completion, Conversation, ModelError, Sampling, ToolSchemas
from spade_envs.models.batch_generation import generate_rows
from spade_envs.models.chat_template import begun, render, takes_tools, too_long
from spade_envs.models.inverse_transform import InverseTransform, uniforms
from spade_envs.models.pretrained import from_pretrained

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

NANO_FOLDER = Path(__file__).parent / "nano"
_INSTALL = "pip install 'spade-envs[train]'"
_ONE_THREAD_BELOW = 20_000_000
"""Parameters below which a CPU model runs on one thread: handing out such small pieces costs more than it saves.

0.45 M parameters on two busy cores: 256 replies in 4.6 s on one thread, in 101 s on two.
"""
_END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "<|end_of_turn|>")


class TransformersModel:
    """A causal language model and its tokenizer as a :class:`~spade_envs.models.base.ChatModel`.

    Make it with :meth:`load`, or from objects that are there already (a policy in training).
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        batch_size: int = 64,
        max_batch_tokens: int = 131_072,
        template: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            model: a ``transformers`` causal language model, on its device.
            tokenizer: its tokenizer, with a chat template.
            name: for records and logs.
            batch_size: most conversations in one forward pass.
            max_batch_tokens: most tokens of one batch, padding and room for the replies included.
            template: further arguments of the chat template, e.g. ``{"enable_thinking": False}``.
        """
        if not getattr(tokenizer, "chat_template", None):
            raise ModelError(f"model {name}: its tokenizer has no chat template; use an instruction-tuned model")
        self._tokenizer, self._name, self._template = tokenizer, name, template
        self._batch_size = batch_size
        # These are for whoever runs the model by an engine of its own, too.
        self.module = model
        self.max_batch_tokens = max_batch_tokens
        self.end_ids = _end_ids(model, tokenizer)
        self._pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.end_ids[0]
        self.context = int(getattr(model.config.get_text_config(), "max_position_embeddings", 0) or 1 << 30)
        size = sum(parameter.numel() for parameter in model.parameters())
        self.one_thread = size < _ONE_THREAD_BELOW and str(model.device) == "cpu"
        """Whether the model is so small that it runs fastest on one thread."""
        self._lock = threading.Lock()
        self.on_tokens: Callable[[int, int, int], None] | None = None
        """Told while a batch is written: tokens so far, the most there may be, conversations that go on."""

    @classmethod
    def load(
        cls,
        directory_or_id: str | Path,
        *,
        name: str | None = None,
        adapter: str | Path | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int = 64,
    ) -> TransformersModel:
        """Load a model from a directory or, by hub id, from the local cache, else from the hub.

        Args:
            directory_or_id: a directory with weights, configuration and tokenizer, or ``owner/name``.
            name: for records; by default the last part of ``directory_or_id``.
            adapter: folder of a PEFT adapter to put on it.
            device: "cpu", "cuda", "cuda:1", …; by default the GPU if there is one.
            dtype: "float32", "bfloat16", …; by default that of the weights on a GPU, float32 on a CPU.
            batch_size: most conversations in one forward pass.

        Raises:
            ModelError: if a library is missing, or the model cannot be found or loaded.
        """
        torch, transformers = _libraries()
        source = str(directory_or_id)
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if dtype is None:
            dtype = "float32" if device == "cpu" else "auto"
        try:
            torch_device = torch.device(device)
            torch_dtype = dtype if dtype == "auto" else getattr(torch, dtype)
        except (RuntimeError, AttributeError) as error:
            raise ModelError(f"device {device!r} or dtype {dtype!r} is not known to torch: {error}") from error
        tokenizer = from_pretrained(transformers.AutoTokenizer, source, padding_side="left")
        with _quiet(transformers):
            model = from_pretrained(transformers.AutoModelForCausalLM, source, dtype=torch_dtype)
            if adapter is not None:
                model = _adapted(model, adapter)
        try:
            model = model.to(torch_device).eval()
        except (RuntimeError, AssertionError) as error:  # no such GPU, or not enough of its memory
            raise ModelError(f"model {source} cannot be moved to {device}: {error}") from error
        return cls(model, tokenizer, name=name or Path(source).name, batch_size=batch_size)

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
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        """Return one completion for each conversation, in order; see :class:`ToolModel`.

        Tools go through the chat template; calls come back in the text, in the template's own form. ``seeds`` gives
        each conversation a seed of its own, so that its reply does not depend on its place (a server's requests).
        """
        keys = [(sampling.seed, index) for index in range(len(conversations))]
        if seeds is not None:
            keys = [(seed, 0) for seed in seeds]
        if self.module is None:
            raise ModelError(f"model {self._name} was closed")
        offered = tools or [()] * len(conversations)
        prompts = [self.prompt(*pair) for pair in zip(conversations, offered, strict=True)]
        completions = [self.refused(prompt) for prompt in prompts]
        waiting = [index for index, completion in enumerate(completions) if completion is None]
        waiting.sort(key=lambda index: (-len(prompts[index]), index))  # the longest first: memory runs out early
        with self._lock, _one_thread() if self.one_thread else contextlib.nullcontext():
            position = 0
            while position < len(waiting):
                size = self._fitting(len(prompts[waiting[position]]) + sampling.max_tokens, len(waiting) - position)
                chunk = waiting[position : position + size]
                position += size
                for index, completion in zip(chunk, self._generate_fitting(chunk, prompts, sampling, keys)):
                    completions[index] = completion
        return [completion for completion in completions if completion is not None]

    def close(self) -> None:
        """Drop the model."""
        self.module = None

    def prompt(self, conversation: Conversation, tools: ToolSchemas = ()) -> list[int]:
        """Return the ids of a conversation, with the beginning of the reply.

        Raises:
            ModelError: if the chat template refuses it.
        """
        return render(self._tokenizer, self._name, conversation, tools, self._template)

    def refused(self, prompt: Sequence[int]) -> Completion | None:
        """Return the completion of a prompt that leaves no room for a reply; None if it does."""
        if len(prompt) < self.context:
            return None
        return Completion("", len(prompt), 0, "error", too_long(len(prompt), self.context))

    def completion(self, prompt: Sequence[int], ids: Sequence[int]) -> Completion:
        """Return the completion whose new ids these are; what comes after an end is left out."""
        ends = set(self.end_ids)
        stop = next((position for position, token in enumerate(ids) if token in ends), None)
        text = self._tokenizer.decode(ids[:stop], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        text = begun(self._tokenizer, prompt) + text
        used = len(ids) if stop is None else stop + 1
        return Completion(text, len(prompt), used, "length" if stop is None else "stop")

    def _fitting(self, row_tokens: int, left: int) -> int:
        return max(1, min(self._batch_size, left, self.max_batch_tokens // max(1, row_tokens)))

    def _generate_fitting(
        self, chunk: list[int], prompts: list[list[int]], sampling: Sampling, keys: Sequence[tuple[int, int]]
    ) -> list[Completion]:
        """Generate for one chunk; on lack of GPU memory in halves."""
        import torch

        try:
            return self._generate(chunk, prompts, sampling, keys)
        except torch.cuda.OutOfMemoryError as error:
            if len(chunk) == 1:
                raise ModelError(
                    f"model {self._name}: out of GPU memory with one conversation of {len(prompts[chunk[0]])} tokens "
                    f"and {sampling.max_tokens} new ones; ask for fewer tokens or use a smaller model"
                ) from error
        torch.cuda.empty_cache()
        self._batch_size = max(1, len(chunk) // 2)
        logger.warning("model %s: out of GPU memory, batch size is now %d", self._name, self._batch_size)
        half = (len(chunk) + 1) // 2
        first = self._generate_fitting(chunk[:half], prompts, sampling, keys)
        return first + self._generate_fitting(chunk[half:], prompts, sampling, keys)

    def _generate(
        self,
        chunk: list[int],
        prompts: list[list[int]],
        sampling: Sampling,
        keys: Sequence[tuple[int, int]] | None = None,
    ) -> list[Completion]:
        import torch
        import transformers

        width = max(len(prompts[index]) for index in chunk)
        rooms = [min(sampling.max_tokens, self.context - len(prompts[index])) for index in chunk]
        rows = [[self._pad_id] * (width - len(prompts[index])) + prompts[index] for index in chunk]
        mask = [[0] * (width - len(prompts[index])) + [1] * len(prompts[index]) for index in chunk]
        processor = None
        if sampling.temperature > 0:
            drawn = [keys[index] if keys else (sampling.seed, index) for index in chunk]
            stacked = np.stack([uniforms(seed, place, max(rooms)) for seed, place in drawn])
            numbers = torch.from_numpy(stacked).to(self.module.device)

            def processor(places: torch.Tensor) -> InverseTransform:
                return InverseTransform(numbers[places], width, sampling)

        with _quiet(transformers):
            written = generate_rows(
                *(self.module, rows, mask, rooms, self.end_ids, self._pad_id, processor, self.on_tokens)
            )
        return [self.completion(prompts[index], ids) for index, ids in zip(chunk, written)]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _end_ids(model: Any, tokenizer: Any) -> list[int]:
    """Every token that ends a turn: the model's, the tokenizer's, and the usual ones that the vocabulary has."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = list(configured) if isinstance(configured, list | tuple) else [configured]
    ids.append(tokenizer.eos_token_id)
    vocabulary = tokenizer.get_vocab()
    ids += [vocabulary[token] for token in _END_OF_TURN if token in vocabulary]
    found = sorted({token for token in ids if token is not None})
    if not found:
        raise ModelError("the model has no end-of-sequence token; set eos_token_id in its generation_config.json")
    return found


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ModelError(f"running a model here needs torch and transformers ({error}); {_INSTALL}") from error
    return torch, transformers


def _adapted(model: Any, adapter: str | Path) -> Any:
    try:
        from peft import PeftModel
    except ImportError as error:
        raise ModelError(f"an adapter needs peft ({error}); {_INSTALL}") from error
    if not (Path(adapter) / "adapter_config.json").is_file():
        raise ModelError(f"directory {adapter} holds no adapter: it has no adapter_config.json")
    try:
        return PeftModel.from_pretrained(model, str(adapter))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"the adapter in {adapter} does not fit this model: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep load bars and per-call advice off our terminal."""
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    bar = transformers.logging.is_progress_bar_enabled()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bar:
            transformers.logging.enable_progress_bar()

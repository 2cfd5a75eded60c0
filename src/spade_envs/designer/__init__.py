"""From documents to environments: prompts, extraction, validation, hints, generation."""

from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.designer.designer import Designer, validation_config
from spade_envs.designer.generate import GenerateError, GenerateSummary, generate, preview
from spade_envs.designer.hints import HintWriter
from spade_envs.designer.prompts import PromptSet, PromptSetError, available_prompt_sets
from spade_envs.source_text.extract import Extracted, extract_program

__all__ = [
    "Attempt",
    "DesignPrompt",
    "Designer",
    "Extracted",
    "GenerateError",
    "GenerateSummary",
    "HintWriter",
    "PromptSet",
    "PromptSetError",
    "available_prompt_sets",
    "extract_program",
    "generate",
    "preview",
    "validation_config",
]

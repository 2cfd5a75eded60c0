"""From documents to environments: prompts, extraction, validation, hints, generation."""

from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.designer.designer import Designer, validation_config
from spade_envs.designer.generate import GenerateError, generate
from spade_envs.designer.hints import HintWriter
from spade_envs.designer.prompt_files import copy_prompt_set, default_prompt_set
from spade_envs.designer.prompts import PromptSet, PromptSetError, available_prompt_sets
from spade_envs.designer.rounds import preview
from spade_envs.designer.summary import GenerateSummary
from spade_envs.designer.tokens import cut_for
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
    "copy_prompt_set",
    "cut_for",
    "default_prompt_set",
    "extract_program",
    "generate",
    "preview",
    "validation_config",
]

"""Source as text, before anything runs: the program in a model's reply, and repairs of mechanical faults."""

from spade_envs.source_text.extract import Extracted, extract_program
from spade_envs.source_text.fix import Fixed, fix_source
from spade_envs.source_text.mend import mend_source

__all__ = ["Extracted", "Fixed", "extract_program", "fix_source", "mend_source"]

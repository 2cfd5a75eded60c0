"""Validation: probes that run a generated program in the sandbox and say what is wrong with it."""

from spade_envs.validation import render
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Report, Severity
from spade_envs.validation.sources import collect_sources, count_sources, find_source, iter_sources
from spade_envs.validation.validate import Probe, validate, validate_many

__all__ = [
    "Evidence",
    "Finding",
    "Probe",
    "Report",
    "Severity",
    "ValidationConfig",
    "collect_sources",
    "count_sources",
    "find_source",
    "iter_sources",
    "render",
    "validate",
    "validate_many",
]

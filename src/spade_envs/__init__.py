"""Synthesise, sandbox, validate, store, search and share environments as real ``gymnasium`` environments."""

__version__ = "0.1.0"

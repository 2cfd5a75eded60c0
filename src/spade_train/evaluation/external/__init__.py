"""Suites that an official evaluator runs, in a virtual environment of its own, against an endpoint."""

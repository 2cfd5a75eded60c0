"""Engines in which no conversation waits for another one; see :mod:`spade_train.engine` for what they share."""

"""Suites by kind; :func:`spade_train.evaluation.catalogue.make_suite` makes them by name."""

# Two commands do all set-up on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: quickstart test lint docs bench clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("spade needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; call make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@echo 'Installing into $(VENV), torch among it: some minutes without a word.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dev]'
	touch $@

quickstart: $(STAMP)
	$(BIN)/spade quickstart

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build --quiet -W --keep-going -b html docs docs/_build/html

bench: $(STAMP)
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist

# Every target sets itself up: bare Python 3.11 or later is enough.
#   make PYTHON=python3.12 test     another interpreter
#   make VENV=/somewhere test       another place for the environment

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
PYTEST_ARGS ?=
# One more than there are cores, because tests wait for disks, servers and clocks; at most four.
WORKERS = $$($(BIN)/python -c 'import os; print(min(os.cpu_count() or 1, 3) + 1)')

.DEFAULT_GOAL := help
.PHONY: help run test lint bench docs figures serve torture package clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run  ## the main job: an adaptive analyst, several filters, one ledger, verified; in out/
	@$(BIN)/residua demo --out out

test: $(VENV)/.dev  ## the tests, short form (HYPOTHESIS_PROFILE=thorough for the long one)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

lint: $(VENV)/.dev  ## style, formatting, types, import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.bench  ## beside every peer (each installed apart); docs/benchmarks.md and out/benchmarks.html
	@$(BIN)/python -m benchmarks --markdown docs/benchmarks.md --html out/benchmarks.html --save out/benchmarks.json

docs: $(VENV)/.docs  ## regenerate the references, run every snippet, build the site in out/site
	@$(BIN)/python docs/cli_reference.py
	@$(BIN)/python docs/api_reference.py
	@$(BIN)/python docs/http_reference.py
	@$(BIN)/python -m pytest -q tests/test_docs.py tests/test_readme.py tests/test_site.py tests/test_vocabulary.py
	@$(BIN)/zensical build --strict --clean
	@echo "open out/site/index.html"

figures: $(VENV)/.run  ## redraw the pictures of the documentation (docs/figures)
	@$(BIN)/residua figures --out docs/figures --format svg

serve: $(VENV)/.run  ## the budget service on loopback, for a look around: no token is needed
	@mkdir -p out
	@$(BIN)/residua serve --dev --store sqlite:///out/demo.db --log-format text --log-level warning

torture: $(VENV)/.dev  ## kill writers of the ledger and cut their power, 500 times each; simulate 3000 seeds; record 20 histories of clients
	@RESIDUA_SEEDS=$${RESIDUA_SEEDS:-3000} $(BIN)/python -m pytest -q -n auto --maxprocesses 4 tests/simulation
	@RESIDUA_KILLS=$${RESIDUA_KILLS:-500} $(BIN)/python -m pytest -s -q tests/faults
	@RESIDUA_HISTORIES=$${RESIDUA_HISTORIES:-20} $(BIN)/python -m pytest -s -q tests/service/client/test_history.py
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q tests/individual/test_crash.py

package: $(VENV)/bin/python  ## build wheel and sdist; install each extra alone in a fresh environment (minutes)
	@$(BIN)/python tests/package/each_extra.py

clean:  ## remove the environment and everything the tools left behind
	@rm -rf $(VENV) .venv-peers .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache out

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "residua needs Python 3.11 or later, got %d.%d; choose one with make PYTHON=..." % sys.version_info[:2])'
	@echo "setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(VENV)

# What users have: a third of what it takes to work on it.
$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	@$(PIP) --editable '.[service,figures,verify]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.dev
	@$(PIP) --editable '.[bench]'
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.dev
	@$(PIP) --editable '.[docs]'
	@touch $@

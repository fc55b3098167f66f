# `make run` and `make test` set up what they need first; the second time that takes no time.
SHELL := /bin/sh
PYTHON := .venv/bin/python
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
SCENARIO ?= clos96.yaml
.DEFAULT_GOAL := help

.NOTPARALLEL:
.PHONY: help setup run test lint unit emulation clean

help:
	@echo "make run    set up and run the testbed on $(SCENARIO) (SCENARIO=... for another one)"
	@echo "make test   set up and run all checks and tests (emulation tests only as root)"
	@echo "make setup  install what is needed, or nothing if it is there"
	@echo "make lint, make unit, make emulation: the parts of make test"
	@echo "make clean  undo what a killed run left, and remove caches"

setup:
	@tools/setup.sh

run: setup
	$(SUDO) $(PYTHON) -m testbed run $(SCENARIO)

test: lint unit emulation

lint: setup
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

unit: setup
	$(PYTHON) -m pytest --numprocesses auto tests/unit

emulation: setup
	$(PYTHON) -m pytest tests/emulation

clean: setup
	$(SUDO) $(PYTHON) -m testbed clean
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build

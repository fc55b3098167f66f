# `make run` and `make test` set up what they need first; the second time that takes no time.
SHELL := /bin/sh
PYTHON := .venv/bin/python
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
TWO_AT_A_TIME := --tx '2*popen//python=tools/apart.sh $(PYTHON)'
SCENARIO ?= clos96.yaml
.DEFAULT_GOAL := help

.NOTPARALLEL:
.PHONY: help setup run test lint docs unit browser emulation package lock bpf clean

help:
	@echo "make run    set up and run the testbed on $(SCENARIO) (SCENARIO=... for another one)"
	@echo "make test   set up and run all checks and tests (emulation tests only as root)"
	@echo "make setup  install what is needed, or nothing if it is there"
	@echo "make lint, make docs, make unit, make browser, make emulation: the parts of make test; make docs leaves a site in build/site"
	@echo "make package  build the source distribution and the wheel in dist/, and check them"
	@echo "make lock   renew constraints/ci.txt, the versions of all Python packages that are installed here"
	@echo "make bpf    compile the programs for the kernel again (clang and libbpf-dev)"
	@echo "make clean  undo what a killed run left, and remove caches"

setup:
	@tools/setup.sh

run: setup
	$(SUDO) $(PYTHON) -m testbed run $(SCENARIO)

# Emulation tests run two at a time, each in namespaces of its own, but for those whose runs need the whole machine. Checks
# and unit tests take the CPU that those leave idle which judge no times.
test: setup
	@tools/beside.sh "tools/setup.sh browser && tools/setup.sh programs && $(MAKE) lint docs unit" $(PYTHON) -m pytest $(TWO_AT_A_TIME) --dist loadgroup -m shares_machine tests/emulation
	$(PYTHON) -m pytest --numprocesses auto --dist loadfile tests/browser
	$(PYTHON) -m pytest $(TWO_AT_A_TIME) --dist loadfile -m "not shares_machine and not whole_machine" tests/emulation
	$(PYTHON) -m pytest -m "not shares_machine and whole_machine" tests/emulation

lint: setup
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

docs: setup
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet --strict

unit: setup
	$(PYTHON) -m pytest --numprocesses auto --dist worksteal tests/unit

# Chromium is for these tests only; where it cannot be installed they are skipped.
browser: setup
	@tools/setup.sh browser
	$(PYTHON) -m pytest --numprocesses auto --dist loadfile tests/browser

# Open MPI and mpi4py are for the tests of real programs only; where they cannot be installed those are skipped.
emulation: setup
	@tools/setup.sh programs
	$(PYTHON) -m pytest tests/emulation

bpf:
	tools/bpf.sh

# Build isolation needs the package index.
package: setup
	$(PYTHON) -m pip install --quiet 'gpu-communication-testbed[release]'
	rm -rf dist
	$(PYTHON) -m build
	$(PYTHON) -m twine check --strict dist/*

lock:
	@tools/lock.sh

clean: setup
	$(SUDO) $(PYTHON) -m testbed clean
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build

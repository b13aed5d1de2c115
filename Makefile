# make demo        run a built-in evacuation; trajectory, picture and animation appear under out/
# make test        lint, types and the tests
# make long        the longest checks, and those of array bounds, for which all kernels are compiled once more
# make lowest      the lowest versions of packages that pyproject.toml allows: demo and a part of the tests
# make verify      the verification cases of the field for the default model, which takes minutes; out/verify/index.html
# make fuzz        tries to break it for ten minutes; SEED=2 for other cases, TIME=3600 for an hour
# make bench-check benchmarks against the targets in benchmarks/targets.toml
# Every target sets up what it needs in .venv by itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SHELL  := /bin/bash
SEED   ?= 1
TIME   ?= 600

.PHONY: demo test lint types bench-check long lowest verify fuzz clean
.DELETE_ON_ERROR:

demo: $(VENV)/.core
	$(BIN)/tropel demo

test: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/python tests/lowest_versions.py --if-changed
	$(BIN)/tropel warmup
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

long: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile -m "long or bounds"

lowest: $(VENV)/.python
	$(BIN)/python tests/lowest_versions.py

verify: $(VENV)/.core
	$(BIN)/tropel warmup
	$(BIN)/tropel verify

fuzz: $(VENV)/.dev
	$(BIN)/tropel warmup
	$(BIN)/python -m tests.fuzz --seed $(SEED) --seconds $(TIME)

bench-check: $(VENV)/.dev
	$(BIN)/tropel warmup
	$(BIN)/python -m tropel.bench.check benchmarks/targets.toml

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, but $(PYTHON) is $$($(PYTHON) -V); try  make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml
	@echo "Installing tropel and what it needs into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml
	@echo "Installing tropel and its development tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) .venv-lowest out .pytest_cache .mypy_cache .ruff_cache

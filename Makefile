# Each target sets up .venv by itself, once; the stamp files make the second call quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
THREADS ?= 2

.PHONY: help demo test test-slow lint format bench clean
help:            ## what can be made
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.core: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (a minute or two, once)"
	@$(PIP) torch==2.13.0
	@$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.core
	@$(PIP) -e '.[lint]'
	@touch $@

demo: $(VENV)/.core  ## the main job on bundled data
	@$(BIN)/setpoint demo

test: $(VENV)/.test  ## the whole suite but the slow simulations
	@$(BIN)/python -m pytest -n $(THREADS) --dist loadfile

test-slow: $(VENV)/.test  ## simulated guarantees and long searches
	@$(BIN)/python -m pytest -n $(THREADS) -m slow

lint: $(VENV)/.lint  ## ruff and pyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

format: $(VENV)/.lint  ## let ruff format and sort
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

bench: $(VENV)/.test  ## the quick benchmarks, recorded, and docs/results.md anew from all that are
	@$(BIN)/python -m benchmarks --quick --record; held=$$?; $(BIN)/python -m benchmarks.results && exit $$held

clean:           ## remove what the targets above made
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist

# Two commands do everything on a fresh machine: make serve, make test. Each installs what it needs into .venv and says so.
# Needs Python 3.11 or newer, make, git and a C compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help serve test check bench faults docs requirements clean

help:
	@echo "make serve    start Pegword on 127.0.0.1:8080 (installs it into .venv first)"
	@echo "make test     run every test (installs what they need first, the clients of other systems included)"
	@echo "make check    formatting, lint and types"
	@echo "make bench    quality, latency and load, against other systems in the same run"
	@echo "make faults   the long form of the fault tests, several hours; writes docs/reliability.md"
	@echo "make docs     write the checked files again: --help pages, examples"

$(VENV)/serve.stamp: requirements.txt pyproject.toml
	@echo "Installing Pegword into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/serve.stamp requirements-dev.txt
	@echo "Installing what the tests need into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

serve: $(VENV)/serve.stamp
	@$(BIN)/pegword serve

test: $(VENV)/dev.stamp clients
	@echo "Running every test ..."
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

# The real clients of Turnstone, each in an environment of its own: what they need must not enter ours.
CLIENTS := 1.6.9 1.7.4 1.8.7
.PHONY: clients
clients: $(CLIENTS:%=.venv-clients/turnstone-%/ready.stamp)

.venv-clients/turnstone-%/ready.stamp:
	@echo "Installing the Turnstone client $* ($(strip $(foreach n,1 2 3,$(if $(filter $*,$(word $n,$(CLIENTS))),$n))) of $(words $(CLIENTS)), about 25 s) into .venv-clients/turnstone-$* ..."
	@$(PYTHON) -m venv .venv-clients/turnstone-$*
	@.venv-clients/turnstone-$*/bin/python -m pip install --quiet --disable-pip-version-check turnstone==$*
	@touch $@

check: $(VENV)/dev.stamp
	@echo "Formatting, lint, types ..."
	@$(BIN)/ruff format --check --quiet src tests bench examples
	@$(BIN)/ruff check --quiet src tests bench examples
	@$(BIN)/mypy

$(VENV)/bench.stamp: $(VENV)/dev.stamp requirements-bench.txt
	@echo "Installing what the benchmarks need into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.txt
	@touch $@

bench: $(VENV)/bench.stamp .venv-clients/turnstone-1.7.4/ready.stamp
	@PEGWORD_BENCH_TURNSTONE_PYTHON=.venv-clients/turnstone-1.7.4/bin/python $(BIN)/python -m bench.quality
	@PEGWORD_BENCH_TURNSTONE_PYTHON=.venv-clients/turnstone-1.7.4/bin/python $(BIN)/python -m bench.latency
	@PEGWORD_BENCH_TURNSTONE_PYTHON=.venv-clients/turnstone-1.7.4/bin/python $(BIN)/python -m bench.load --short
	@$(BIN)/python -m bench.cache

faults: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.faults.long

docs: $(VENV)/dev.stamp
	@PEGWORD_REWRITE=1 $(BIN)/python -m pytest -q tests/cli tests/test_docs.py

# Pin what pyproject.toml allows, with hashes and without a word on where it is fetched from.
requirements: pyproject.toml
	@test -x $(VENV)-pin/bin/pip-compile || ($(PYTHON) -m venv $(VENV)-pin && $(VENV)-pin/bin/python -m pip install --quiet pip-tools)
	@$(VENV)-pin/bin/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --no-annotate --output-file requirements.txt pyproject.toml
	@$(VENV)-pin/bin/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --no-annotate --extra dev --output-file requirements-dev.txt pyproject.toml
	@$(VENV)-pin/bin/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --no-annotate --extra bench --output-file requirements-bench.txt pyproject.toml

clean:
	rm -rf $(VENV) $(VENV)-pin .venv-clients

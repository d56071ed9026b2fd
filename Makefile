# Every target sets up what it needs: a machine with python3, pip and make is enough.

PYTHON ?= python3
ENV    := .venv
BIN    := $(ENV)/bin
READY  := $(ENV)/.ready

.PHONY: tour test check audit bench lock clean

tour: $(READY)            ## the main job, end to end, on made-up people
	$(BIN)/discreet tour

test: check               ## format, lint, types, then every test that belongs to a quick run
	$(BIN)/python -m pytest

check: $(READY)           ## format, lint, strict types
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy

audit: $(READY)           ## the slow statistical matrices, and the attacks on this installation
	$(BIN)/python -m pytest -m slow
	$(BIN)/discreet audit

bench: $(READY) .venv-peers/.ready   ## speed and memory, side by side with the peers, into bench/RESULTS.md
	$(BIN)/python -m bench.run --peer-python .venv-peers/bin/python

lock: $(READY)            ## renew requirements.lock and bench/peers.lock from pyproject.toml and bench/peers.in
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file requirements.lock
	$(BIN)/uv pip compile bench/peers.in --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file bench/peers.lock

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(ENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv-peers/.ready: bench/peers.lock
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement bench/peers.lock
	touch $@

clean:
	rm -rf $(ENV) .venv-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis

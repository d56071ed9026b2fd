# Every target sets up what it needs: a machine with python3, pip and make is enough.

PYTHON ?= python3
ENV    := .venv
BIN    := $(ENV)/bin
READY  := $(ENV)/.ready

.PHONY: tour test check audit docs bench lock clean

tour: $(READY)            ## the main job, end to end, on a bundled table of real people
	$(BIN)/discreet tour

test: check               ## format, lint, types, then every test that belongs to a quick run: in two halves, side by side
	@$(BIN)/python -m pytest tests/architecture tests/audit tests/contract tests/crash tests/property tests/statistical > .first-half.log 2>&1 & first=$$!; \
	$(BIN)/python -m pytest tests/unit tests/e2e; second=$$?; \
	wait $$first; first=$$?; cat .first-half.log; rm -f .first-half.log; exit $$((first || second))

check: $(READY)           ## format, lint, strict types, and the limits of the house
	$(BIN)/ruff format --check src tests bench docs tools examples setup.py
	$(BIN)/ruff check src tests bench docs tools examples setup.py
	$(BIN)/mypy
	$(BIN)/python tools/house.py

audit: $(READY)           ## the slow matrices (statistics, kills, power cuts, disk errors, damage), and the attacks on this installation
	$(BIN)/python -m pytest -m slow
	$(BIN)/discreet audit

docs: $(READY)            ## the documentation and the labs as HTML, offline, into docs/_build/html
	$(BIN)/python docs/generate.py --labs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(READY) .venv-peers/.ready .venv-diffprivlib/.ready .venv-opacus/.ready .venv-aim/.ready   ## beside the peers, into bench/RESULTS.md; SUITE=noise or SUITE=pmw for some of it
	$(BIN)/python -m bench.run $(SUITE)

lock: $(READY)            ## renew requirements.lock and bench/*.lock from pyproject.toml and bench/*.in
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file requirements.lock
	for peer in peers diffprivlib opacus aim; do UV_FIND_LINKS="$$PIP_FIND_LINKS" \
	  $(BIN)/uv pip compile bench/$$peer.in --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file bench/$$peer.lock || exit 1; done

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(ENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv-%/.ready: bench/%.lock   # a peer that cannot be installed is left out, and the results say so
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $< && touch $@ \
	  || echo "bench/$*.in cannot be installed here: the benchmarks leave it out"

clean:
	rm -rf $(ENV) .venv-peers .venv-diffprivlib .venv-opacus .venv-aim .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/_labs

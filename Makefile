# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# For tests of pages and their scripts, where npm is present.
NODE := axe-core@4.14.1 typescript@7.0.2
READY := $(VENV)/ready
# What the site needs; no more is installed for it where `make setup` has not run.
SITE := $(if $(wildcard $(READY)),$(READY),$(VENV)/site)

.PHONY: setup demo test lint docs bench hunt fuzz release oldest campaign everywhere clean

setup: $(READY)

# The torch wheel is installed first, so that no dependency pulls another build of it. Python compiles
# what it imports, so pip need not compile everything. Of rxnmapper only the weights are read, for
# which it needs none of the packages it asks for.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt \
		--editable ".[plot,graph,text,sklearn,notebook,ray,dask,models,minilm,verify,bench,docs,dev,release]"
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt \
		--no-deps rxnmapper
	! command -v npm >/dev/null || npm install --silent --no-save --no-package-lock --no-audit \
		--no-fund --fetch-retries 1 --prefix $(VENV)/node $(NODE) || echo "npm: no $(NODE)"
	touch $@

demo: setup
	$(BIN)/attnmargin demo --out demo

# numba's cache does not see a change in a file that another one imports: drop what is stale. The
# kernels are compiled beside the linters, once for all workers.
test: setup
	find src -name '*.nbi' ! -newer "$$(find src -name '*.py' -exec ls -t {} + | head -n 1)" -delete
	$(BIN)/python -m tests.warm & $(MAKE) --no-print-directory lint && wait
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

$(VENV)/site: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt \
		--editable ".[docs,plot,graph,text,sklearn,models]"
	touch $@

# The site, with the gallery and the tutorials run; warnings are errors, and every link is followed.
docs: $(SITE)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	$(BIN)/python docs/extensions/check.py docs/_build/html

bench: setup
	$(BIN)/python -m benchmarks.frobenius
	$(BIN)/python -m benchmarks.conic
	$(BIN)/python -m benchmarks.device --device cpu
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.graphs
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.sequences

# The library against independent oracles: MINUTES for all areas together, CASES per area.
MINUTES ?= 10
CASES ?= 100000
SEED ?= 0
hunt: setup
	$(BIN)/python -m tests.hunt.run --minutes $(MINUTES) --cases $(CASES) --seed $(SEED) --out hunt

# Files that are damaged or hostile, MINUTES for each reader; defects and their inputs lie in fuzz/.
fuzz: setup
	$(BIN)/python -m tests.campaigns.fuzz.run --minutes $(MINUTES) --seed $(SEED) --out fuzz --json fuzz/fuzz.json

# Wheel, sdist and bills of materials in dist/, tried in clean environments.
release: setup
	$(BIN)/python -m tests.release.run

# The quickstart with the oldest versions; their torch brings gigabytes.
oldest: setup
	$(BIN)/python -m tests.release.run --oldest

# Kills, full disks and clocks that jump: KILLS per command, as root with a tmpfs.
KILLS ?= 100
campaign: setup
	$(BIN)/python -m tests.campaigns.kills.run --kills $(KILLS) --seed $(SEED)

# The same answers with 1, 2 and 4 threads, in batches of any size, without numba, and when asked again.
everywhere: setup
	$(BIN)/python -m tests.campaigns.everywhere.run

clean:
	rm -rf $(VENV) build dist demo hunt fuzz docs/_build docs/gallery docs/learn docs/reference .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name '__pycache__' -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info

# The only commands to know: setup, demo, test, check, bench, docs, dist, clean.
# Each does the set-up itself; when nothing changed that takes no time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

# Bytecode is kept here, also where it is not elsewhere: tests start hundreds of processes, which would each compile the package.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test check bench docs dist lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "barkspider needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m barkspider.cli warm
	@touch $@

demo: setup
	$(BIN)/barkspider demo

# A process for each core, and whole files to each, because what is dear to make is made once a file.
test: setup
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 8 --dist loadfile

check: setup
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup $(VENV)/peers
	$(BIN)/python -m benchmarks all --quick

# What the benchmarks measure themselves against.
$(VENV)/peers: requirements-bench.lock $(READY)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-bench.lock
	@touch $@

# The pages of docs/ as a site in build/site, which needs no network to be read.
docs: setup $(VENV)/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The packages in dist/, as an index would take them.
dist: setup $(VENV)/site
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist > /dev/null
	$(BIN)/twine check --strict dist/*

$(VENV)/site: requirements-docs.lock $(READY)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	@touch $@

# For maintainers: rewrite the lock after pyproject.toml changed (needs uv).
lock:
	uv pip compile --quiet --universal --python-version 3.11 --extra dev --extra lab --extra cluster --extra dashboard --extra database --extra scrapy --extra text --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header pyproject.toml --output-file requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --extra dev --extra lab --extra cluster --extra dashboard --extra database --extra scrapy --extra text --extra bench --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header pyproject.toml --output-file requirements-bench.lock
	uv pip compile --quiet --universal --python-version 3.11 --extra docs --constraint requirements.lock --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header pyproject.toml --output-file requirements-docs.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

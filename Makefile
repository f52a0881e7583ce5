# Everything a newcomer needs: `make demo` shows it, `make test` checks it. Only Python (3.11 or later) is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS := .venv-docs
JOBS ?= 2

# Each of the test processes computes in one thread: libraries that use all cores in each of them wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo reproduce test test-lowest check lint fast crash mutants mutants-recheck bench docs site dist lock forget clean

demo: $(VENV)/installed
	$(BIN)/ranktron demo --out out/demo

# The experiments of the five papers, report in out/reproduction: minutes; OPTIONS= for everything, an hour
OPTIONS ?= --quick
reproduce: $(VENV)/installed
	$(BIN)/python -m reproduction all $(OPTIONS) --out out/reproduction

test: $(VENV)/installed-dev forget lint
	$(BIN)/ranktron compile
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -q -m "not timed" --durations=15 --cov --cov-report=term
	@echo "make test: all is well"

check: $(VENV)/installed-dev lint fast

# An environment of its own with exactly the lowest versions that pyproject.toml allows, and a part of the tests that uses
# all of them: about ten minutes, most of them for compiling. Its kernels are cached there, apart from the others.
LOWEST := out/lowest
# polars ended with 1.40 how scikit-learn 1.6 to 1.8 read its names; newer pyparsing warns matplotlib 3.10
LOWEST_TOOLS := pytest hypothesis packaging pyyaml 'polars<1.40' 'pyparsing<3.3'
LOWEST_TESTS := export data/io/test_tables.py data/io/test_table_writing.py data/io/test_formats.py \
  data/test_rounds.py estimators/test_pipelines.py estimators/test_columns.py metrics/test_significance.py \
  metrics/test_scoring.py training/test_model.py training/figures cli/test_main.py dask/test_independent_tasks.py \
  service/http/test_http.py service/test_sealed_rounds.py service/test_telemetry.py service/test_tracing.py \
  store/journal/test_postgres_journal.py
LOWEST_OPTIONS := -m "not slow and not timed and not browser and not data"
test-lowest: $(VENV)/installed-dev
	$(BIN)/python -m venv --clear $(LOWEST)
	$(BIN)/python tests/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip install -q -c $(LOWEST)/constraints.txt -e '.[all,dask,mlflow,tracing]' $(LOWEST_TOOLS)
	NUMBA_CACHE_DIR=$(abspath $(LOWEST))/cache $(LOWEST)/bin/python -m pytest -q $(LOWEST_OPTIONS) $(addprefix tests/,$(LOWEST_TESTS))

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fast: $(VENV)/installed-dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -q -m "not slow and not timed"

# Kills a server 2,000 times under load, leaders and databases 500 times, followers with their leaders 800 times, and looks
# whether anything was lost: half an hour.
crash: $(VENV)/installed-dev
	RANKTRON_KILLS=2000 $(BIN)/python -m pytest -q -s tests/service/test_crash.py tests/service/test_postgres_crash.py \
		tests/service/replication/test_follower_crash.py

# Puts faults into the package, one at a time, and counts those that no test notices; can be stopped and taken up again.
mutants: $(VENV)/installed-dev
	$(BIN)/python tests/mutation/run.py run
	$(BIN)/python tests/mutation/run.py run --again --seconds 60

# Fails when a fault of the last sample that some test noticed is noticed no more.
mutants-recheck: $(VENV)/installed-dev
	$(BIN)/python tests/mutation/run.py recheck

bench: $(VENV)/installed-dev
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/python -m pytest -q -m timed
	$(BIN)/python -m benchmarks

# the site, without a warning and without the network: open out/docs/index.html
docs: $(DOCS)/installed
	$(DOCS)/bin/python -m sphinx -E -W --keep-going -q -b html -d out/trees docs out/docs
	@echo "make docs: out/docs/index.html"

# the same beside the sites of other versions in out/site, with a menu of versions in each
site: docs
	$(DOCS)/bin/python docs/versions.py out/docs out/site

# The files of a release in dist/: of the same commit always the same bytes. Each is installed into an empty environment.
dist: $(VENV)/installed-dev
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	for file in dist/*; do \
	  $(BIN)/python -m venv --clear out/empty && out/empty/bin/pip install -q $$file && \
	  (cd out/empty && bin/ranktron simulate separable d.txt --queries 20 && bin/ranktron train d.txt --model m) || exit 1; \
	done
	$(BIN)/python -m pytest -q tests/test_distribution.py

# The versions that continuous integration installs.
lock:
	uv pip compile -q --upgrade --universal --extra dev --extra bench --no-annotate --no-header -o constraints.txt pyproject.toml

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q -e '.[all]'
	touch $@

# an environment of its own, so that the package under a running server is not installed anew
$(DOCS)/installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install -q --upgrade pip
	$(DOCS)/bin/pip install -q -e '.[all,docs]'
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q -e '.[dev]'
	touch $@ $(VENV)/installed

# numba does not notice when a kernel in another file changes: this makes it compile everything anew
forget:
	find ranktron reproduction -name '*.nb[ic]' -delete

clean:
	rm -rf $(VENV) $(DOCS) out build dist *.egg-info .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find ranktron reproduction tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} +

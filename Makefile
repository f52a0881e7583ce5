# Everything a newcomer needs: `make demo` shows it, `make test` checks it. Only Python (3.11 or later) is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test check lint fast crash mutants mutants-recheck bench docs site forget clean

demo: $(VENV)/installed
	$(BIN)/ranktron demo --out out/demo

test: $(VENV)/installed-dev forget lint
	$(BIN)/ranktron compile
	$(BIN)/python -m pytest -n $(JOBS) -q -m "not timed" --durations=15 --cov --cov-report=term
	@echo "make test: all is well"

check: $(VENV)/installed-dev lint fast

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fast: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(JOBS) -q -m "not slow and not timed"

# Kills a server 2,000 times under load, leaders and databases 500 times, followers with their leaders 800 times, and looks
# whether anything was lost: half an hour.
crash: $(VENV)/installed-dev
	RANKTRON_KILLS=2000 $(BIN)/python -m pytest -q -s tests/service/test_crash.py tests/service/test_postgres_crash.py \
		tests/service/test_follower_crash.py

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
docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html -d out/trees docs out/docs
	@echo "make docs: out/docs/index.html"

# the same beside the sites of other versions in out/site, with a menu of versions in each
site: docs
	$(BIN)/python docs/versions.py out/docs out/site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q -e '.[all]'
	touch $@

$(VENV)/installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q -e '.[all,docs]'
	touch $@ $(VENV)/installed

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q -e '.[dev]'
	touch $@ $(VENV)/installed $(VENV)/installed-docs

# numba does not notice when a kernel in another file changes: this makes it compile everything anew
forget:
	find ranktron -name '*.nb[ic]' -delete

clean:
	rm -rf $(VENV) out build dist *.egg-info .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find ranktron tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} +

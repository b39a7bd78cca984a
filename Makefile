PYTHON ?= python3
WORKERS ?= auto

VENV := .venv
BIN := $(VENV)/bin
# Both the packages and the isolated build of the project itself follow the pins.
PIP_INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# The tests start hundreds of processes: each would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE
# The pytest workers share the cores already.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

define LINT
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
endef

# What is not installed has no types: nothing can then be said of what derives from it.
WITHOUT_TORCH := --allow-subclassing-any --allow-untyped-decorators --no-warn-unused-ignores

# The tests of single parts. Those of whole programs, pages and large data are for `make test`.
UNIT := tests/methods tests/candidates tests/metrics tests/model_selection tests/numerics tests/tables tests/datasets \
	$(filter-out tests/cli/test_compare.py tests/cli/test_costs.py tests/cli/test_deep% tests/cli/test_reproduce.py \
	tests/cli/test_scheduler.py, $(wildcard tests/cli/test_*.py)) \
	$(filter-out tests/review/test_browser.py tests/review/test_saving.py tests/review/test_views.py, \
	$(wildcard tests/review/test_*.py)) \
	$(filter-out tests/test_benchmarks.py tests/test_blocks.py tests/test_cluster.py tests/test_coupling.py \
	tests/test_determinism.py tests/test_documents.py tests/test_estimators.py tests/test_every_estimator.py \
	tests/test_examples.py tests/test_large.py tests/test_literal_jury.py tests/test_manners.py \
	tests/test_out_of_core.py tests/test_selection.py, $(wildcard tests/test_*.py))

# What needs no data and some minutes each. All else in benchmarks/ is a study of accuracy.
BENCHMARKS := goals peers costs partner bases scale evidence features deep

.PHONY: help demo check test all-tests test-slow test-real fuzz crash data-home coverage lint bench docs dist clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile \
		| while IFS='|' read -r target text; do printf 'make %-10s %s\n' "$$target" "$$text"; done

demo: $(VENV)/.stamp-demo ## run the demo, which writes to demo-output
	$(BIN)/appellate demo --out demo-output

check: $(VENV)/.stamp-check ## in four minutes: style, types, imports, unit tests; no torch, browser or cluster
	$(LINT)
	$(BIN)/mypy $(WITHOUT_TORCH)
	$(PYTEST) -q $(UNIT)

test: lint $(VENV)/.stamp-docs ## lint, tests, doctests and the site; with APPELLATE_DATA_HOME set, also on real data
	@$(MAKE) --no-print-directory --jobs=2 all-tests docs

# Many tests wait for processes that they stop: the site is built in the meantime.
all-tests: $(VENV)/.stamp-dev
	$(PYTEST) $(if $(APPELLATE_DATA_HOME),-m "not slow")

test-real: data-home $(VENV)/.stamp-dev ## only the tests on the data sets in APPELLATE_DATA_HOME
	$(PYTEST) -m realdata

test-slow: $(VENV)/.stamp-dev ## only the tests of minutes: a cluster, rows on disk, the gallery, kills
	$(BIN)/python -m pytest -m "slow and not realdata"

fuzz: $(VENV)/.stamp-dev ## 10,000 hostile tables, Arrow files, models, decisions, requests, deep runs; CASES=n
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz $(or $(CASES),10000)

crash: $(VENV)/.stamp-dev ## kill writers before every change of the disk, and a sweep 100 times
	$(BIN)/python -m pytest -m "slow or not slow" tests/crash tests/experiments/test_kill.py

coverage: $(VENV)/.stamp-dev ## how much the tests cover, and the functions they cover least
	$(PYTEST) --cov=appellate --cov-branch --cov-report=
	@mkdir -p build
	$(BIN)/coverage json --quiet -o build/coverage.json
	$(BIN)/python tools/least_covered.py build/coverage.json

data-home:
	@test -d "$$APPELLATE_DATA_HOME" || { \
		echo "Set APPELLATE_DATA_HOME to the directory that holds the data sets:" >&2; \
		echo "    make test-real APPELLATE_DATA_HOME=path/to/data" >&2; \
		exit 1; }

lint: $(VENV)/.stamp-dev ## style, types and import contracts
	$(LINT)
	$(BIN)/mypy

bench: $(VENV)/.stamp-dev ## speed and memory as ratios, in a quarter of an hour; studies are in CONTRIBUTING.md
	@set -e; for name in $(BENCHMARKS); do \
		echo "== $$name"; $(BIN)/python benchmarks/$$name.py; \
	done

docs: $(VENV)/.stamp-docs ## build the site into docs/_build/html; a warning is an error
	rm -rf docs/_build/html docs/generated
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html

dist: $(VENV)/.stamp-release ## build wheel and sdist, check them, try them in empty environments
	$(BIN)/deptry src
	rm -rf dist
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python tools/try_wheel.py dist/*.whl

clean: ## remove the environment, caches and outputs
	rm -rf $(VENV) build dist demo-output
	rm -rf docs/_build docs/auto_examples docs/generated
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache .coverage htmlcov
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# A stamp is touched last, so an interrupted set-up starts again.
$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Appellate needs Python 3.11 or newer; '$(PYTHON)' is not." >&2; \
		echo "Name another one: make PYTHON=python3.12 ..." >&2; \
		exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing appellate[cli,io,report,table] into $(VENV)"
	@$(PIP_INSTALL) --editable '.[cli,io,report,table]'
	@touch $@

$(VENV)/.stamp-check: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing appellate[lint,test] into $(VENV)"
	@$(PIP_INSTALL) --editable '.[lint,test]'
	@touch $(VENV)/.stamp-demo $@

# What the developers need includes what the demo and the check need.
$(VENV)/.stamp-dev: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing appellate[dev] into $(VENV)"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $(VENV)/.stamp-demo $(VENV)/.stamp-check $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing appellate[docs] into $(VENV)"
	@$(PIP_INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/.stamp-release: $(VENV)/.stamp-venv pyproject.toml constraints.txt
	@echo "Installing appellate[release] into $(VENV)"
	@$(PIP_INSTALL) --editable '.[release]'
	@touch $@

# Every target does its own set-up: the virtual environment, the package with its extras, and Java.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.setup-stamp
BENCH_STAMP := $(VENV)/.bench-stamp
EXTRAS := spark,sql,dev,demo,docs
WORKERS ?= 2
SPEED ?= 20
CONFORMANCE := $${WINDOWPANE_CONFORMANCE:-../shared/conformance}
# Dozens of processes import the same modules, which are compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
LOWEST_ON_SPARK := tests/spark/building/test_api.py tests/spark/queries/test_side_outputs.py -m "not slow"
# A recipe line that starts a JVM, or may, begins with this.
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

# PYTHON=... on the command line or in the environment chooses the interpreter of the virtual environment.
export PYTHON

.PHONY: help setup test test-all lint form types docs docs-version release pytest-on-spark pytest-in-process demo demo-kafka live bench nexmark fuzz conformance conformance-spark test-spark-versions test-lowest format clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-22s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Make .venv, install the package with its extras, find or install Java
	@home="$$(scripts/java.sh)" && echo "Java: $$home"

$(STAMP): pyproject.toml scripts/venv.sh
	@echo "Setting up, once: packages into $(VENV), 1.4 GB with Spark, then Java where there is none. A few minutes."
	scripts/venv.sh $(VENV)
	$(PY) -m pip install --editable ".[$(EXTRAS)]"
	touch $@

# A streaming query of a few rows keeps one core busy: beside the tests on Spark, which go first, runs all else.
test: form  ## Lint, type-check, check the direction of imports, build the documentation, run the tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target pytest-on-spark types docs pytest-in-process

lint: form types  ## Lint, type-check, check the direction of imports

form: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-logo

types: setup
	$(PY) -m mypy

pytest-on-spark:
	@$(WITH_JAVA) $(PY) -m pytest -q -m "spark and not slow"

pytest-in-process:
	@$(WITH_JAVA) nice $(PY) -m pytest -q -n $(WORKERS) --dist loadfile -m "not spark and not slow"

test-all: lint  ## Run every test, those that make test leaves out for time, too
	@$(WITH_JAVA) WINDOWPANE_EXAMPLES=all $(PY) -m pytest -q -n $(WORKERS) --dist loadfile -m "not spark"
	@$(WITH_JAVA) $(PY) -m pytest -q -m spark

docs: setup  ## Build the documentation into site/: a broken link or a name without reference fails
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

DOCS_VERSION ?= $(shell $(PY) -c "import windowpane; print('.'.join(windowpane.__version__.split('.')[:2]))")
DOCS_ALIAS ?= latest

docs-version: setup  ## Put the documentation of this version beside earlier ones, on the local branch gh-pages
	@PATH="$(abspath $(VENV)/bin):$$PATH" NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mike deploy --update-aliases $(DOCS_VERSION) $(DOCS_ALIAS)
	@[ $(DOCS_ALIAS) != latest ] && git cat-file -e gh-pages:index.html 2>/dev/null || $(VENV)/bin/mike set-default $(DOCS_ALIAS)
	@$(VENV)/bin/mike list

release: setup  ## Build wheel and sdist; prove them on each Python and Spark: demo, tutorial, golden checkpoints; bill of materials
	@$(WITH_JAVA) scripts/release.sh $(PY)

demo: setup  ## Replay the flights of 2013 through hourly windows on Spark
	@$(WITH_JAVA) $(PY) -m windowpane.demo

demo-kafka: setup  ## Send flights through a real Kafka (it is started, jars by Maven) into windows, a Delta table, and back
	@$(WITH_JAVA) $(PY) -m windowpane.demo.kafka

live: setup  ## One day of the flights, paced in real time: make live SPEED=60 for minutes in a second
	@$(PY) -m windowpane.demo --live --speed $(SPEED)

# Flags for the suite: make bench BENCH="--quick --only sliding"
bench: setup $(BENCH_STAMP)  ## Run the benchmarks beside their peers, about half an hour
	@$(WITH_JAVA) $(PY) -m bench $(BENCH)

# Flags for Nexmark: make nexmark NEXMARK="--query q5 --events 10000000"
nexmark: setup $(BENCH_STAMP)  ## Run the queries of Nexmark in SQL and Python, beside native Spark and Flink, about an hour
	@$(WITH_JAVA) $(PY) -m bench.nexmark $(NEXMARK)

$(BENCH_STAMP): $(STAMP)
	$(PY) -m pip install --quiet --editable ".[$(EXTRAS),bench]"
	touch $@

PROGRAMS ?= 2000

fuzz: setup  ## Run random programs on the reference and on the engine the planner chooses: make fuzz PROGRAMS=2000
	@$(PY) -m verify.fuzz windows --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz functions --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz over --engine columnar --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz rolling --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz joins --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz patterns --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz changes --programs $(PROGRAMS)
	@$(PY) -m verify.fuzz faults --programs $(PROGRAMS)

SHARE ?= 1
JOBS ?= 1

campaign: setup  ## Look for faults for hours and write docs/reliability.md: random programs, vectors, kills; SHARE=0.01 is short
	@$(WITH_JAVA) $(PY) -m verify.campaign --write --share $(SHARE) --jobs $(JOBS)

conformance: setup  ## Replay the conformance vectors, then again with a restart at every step
	@$(PY) -m verify.conformance $(CONFORMANCE)/flink $(CONFORMANCE)/oracle
	@$(PY) -m verify.conformance --restart-every-step $(CONFORMANCE)/flink $(CONFORMANCE)/oracle
	@$(PY) -m verify.conformance --engine local $(CONFORMANCE)/risingwave
	@$(PY) -m verify.conformance --engine columnar $(CONFORMANCE)/flink $(CONFORMANCE)/oracle
	@$(PY) -m verify.conformance --engine columnar --restart-every-step $(CONFORMANCE)/flink $(CONFORMANCE)/oracle
	@$(PY) -m verify.conformance --batch steps --restart-every-step $(CONFORMANCE)/flink $(CONFORMANCE)/oracle
	@$(PY) -m verify.conformance --engine columnar --batch steps --restart-every-step $(CONFORMANCE)/flink $(CONFORMANCE)/oracle

conformance-spark: setup  ## Replay 100 conformance vectors through Structured Streaming
	@$(WITH_JAVA) $(PY) -m verify.conformance --engine spark --limit 100 $(CONFORMANCE)/flink $(CONFORMANCE)/oracle

test-spark-versions:  ## Run the Spark tests on Spark 4.0 to 4.3 (downloads each)
	@$(WITH_JAVA) scripts/test_spark_versions.sh

# The lowest numpy has no wheel for Python 3.13.
test-lowest:  ## Run the tests with the lowest version of every package that pyproject.toml allows
	@PYTHON="$${PYTHON:-python3.11}" scripts/venv.sh .venvs/lowest
	@.venvs/lowest/bin/python scripts/lowest_versions.py docs,bench > .venvs/lowest/constraints.txt
	@.venvs/lowest/bin/python -m pip install --quiet -c .venvs/lowest/constraints.txt --editable ".[spark,sql,postgres,redis,kafka,delta,iceberg,demo,dev]"
	@$(WITH_JAVA) nice .venvs/lowest/bin/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not spark and not slow" --ignore tests/docs
	@$(WITH_JAVA) .venvs/lowest/bin/python -m pytest -q $(LOWEST_ON_SPARK)

format: setup  ## Format the code and apply the linter's safe fixes
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean:  ## Remove environments, caches and build results
	rm -rf $(VENV) .venvs build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

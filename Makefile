# make test: everything from a fresh clone. make help: the other targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2
# One more than there are processors: it waits for the simulated seeds, whose processes run while the others wait.
WORKERS = $$(( $(JOBS) + 1 ))
SEEDS ?= 20000
FRAMES ?= 1000000
KILLS ?= 50
FAILURES ?= 20
RESTARTS ?= 20

# Tests start thousands of processes: modules are compiled once, not in each of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
# Java 17 or later for Spark: found, else installed where that can be done, else what to type.
JAVA := .ci/java

# The oldest Spark that is supported; everything else is tried on the newest.
OLDEST := 4.2
OLDEST_VENV := .venv-$(OLDEST)

.PHONY: help venv demo lint format docs test smoke fuzz bench figures clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

venv: $(READY)  ## set up .venv; quick when it is up to date

$(READY): pyproject.toml hatch_build.py intergroup_core/wire/_native.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or later is needed, and '$(PYTHON)' is not: install one and type  make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) lacks its venv module: on Debian or Ubuntu type  sudo apt install python3-venv  and run make again" >&2; exit 1; }
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(READY)

demo: venv  ## set-up, then a Spark query over three senders on loopback, checked; about a minute
	@$(JAVA)
	$(BIN)/intergroup demo

lint: venv  ## ruff (lint and format) and mypy strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: venv  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv  ## regenerate docs/options.md and docs/spark-options.md
	$(BIN)/python -m intergroup_core.cli.options_page > docs/options.md.new
	@mv docs/options.md.new docs/options.md
	$(BIN)/python -m pyspark_intergroup.options_page > docs/spark-options.md.new
	@mv docs/spark-options.md.new docs/spark-options.md

test: venv lint  ## set-up, lint and every test but the benchmarks
	@if $(JAVA); then $(BIN)/python -m tests.spark.home 2>/dev/null || echo "the JVMs of the tests will start slowly"; \
	  else echo "without it the tests that run Spark are skipped"; fi
	@.ci/hosts || echo "without it the tests that part hosts from each other are skipped"
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 20 --ignore tests/benchmarks tests

smoke:  ## the demo, the examples and errors on the oldest Spark that is supported, in a venv of its own
	@$(JAVA)
	@test -x $(OLDEST_VENV)/bin/python || $(PYTHON) -m venv $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e . 'pyspark==$(OLDEST).*' pytest hypothesis 'pandas>=2,<3'
	$(OLDEST_VENV)/bin/pytest tests/spark/test_demo.py tests/spark/test_examples.py tests/spark/test_errors.py

fuzz: venv  ## simulated seeds, malformed frames, killed agents and queries, long tests: SEEDS=20000 FRAMES=1000000 KILLS=50 FAILURES=20 RESTARTS=20 JOBS=2
	$(BIN)/python -m intergroup_core.sim.fuzz --seeds $(SEEDS) --jobs $(JOBS)
	$(BIN)/python -m intergroup_core.sim.fuzz --fixed --seeds $(SEEDS) --jobs $(JOBS)
	$(BIN)/python -m intergroup_core.sim.hierarchy_fuzz --seeds $$(( $(SEEDS) / 10 ))
	$(BIN)/python -m intergroup_core.sim.transaction_fuzz --seeds $$(( $(SEEDS) / 10 )) --jobs $(JOBS)
	$(BIN)/python tests/property/fuzz_frames.py --frames $(FRAMES)
	$(BIN)/python -m tests.integration.agent_crashes --seeds $(KILLS)
	$(BIN)/python -m tests.integration.commit_failures --seeds $(FAILURES)
	$(BIN)/python -m tests.spark.restarts --seeds $(RESTARTS)
	$(BIN)/python -m tests.spark.exactly_once --seeds $(RESTARTS)
	$(BIN)/python -m tests.spark.large_transaction
	INTERGROUP_LONG_TESTS=1 $(BIN)/pytest -n $(JOBS) --dist loadfile $$(grep -rl --include='test_*.py' 'import sized' tests)

bench: venv  ## goodput, latency and the stable log next to the raw ceiling of the same run
	$(BIN)/intergroup bench throughput
	$(BIN)/intergroup bench latency
	$(BIN)/intergroup bench log
	$(BIN)/intergroup bench catch-up

figures: venv  ## what membership, churn, recovery and the hierarchy cost, by simulation: tables and picture of docs/protocol.md
	$(BIN)/python -m intergroup_core.sim.costs --most-receivers 100
	$(BIN)/python -m intergroup_core.sim.churn
	$(BIN)/python -m intergroup_core.sim.recovery
	$(BIN)/python -m intergroup_core.sim.hierarchy_figures --json docs/hierarchy.json
	$(BIN)/python docs/hierarchy_figures.py

clean:  ## remove virtual environments and caches
	rm -rf $(VENV) $(OLDEST_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

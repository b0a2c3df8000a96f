# `make` lists the targets. ARGS are passed on: make run ARGS="--port 9600", make test ARGS="-k client -x".
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do command -v $$p >/dev/null && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
CODE := extensions plugin rest_handlers connectors integration_tests bench examples scripts
# In as many processes as there are cores, each file in one of them.
PYTEST := .venv/bin/pytest --numprocesses auto --dist loadfile
TESTED := not slow and not peers and not engines
# In one process more, beside the others: some look at all that a server holds.
WITH_SERVERS := opensearch or secured or ml_commons
UNIT := $(PYTEST) --cov-branch --cov-report=
# The least branch coverage of each room by its own tests, in percent.
FLOORS := connectors:95 rest_handlers:90 plugin:75 extensions:75
# Both take half a minute: each package is named while it is fetched.
PIP := set -o pipefail && .venv/bin/pip install --disable-pip-version-check --progress-bar off
SHOWN := | awk '/^Collecting |^Installing collected|^Building |^Successfully/ {print "  " substr($$0, 1, 76); fflush()}'
SHELL := /bin/bash
# Tests start many processes; without kept bytecode each compiles hundreds of files anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install run test slow stable unit integration check format protos fuzz mutants bench build clean opensearch peers clients versions test-runtimes
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed-test ## set up .venv with everything for development
run: .venv/installed ## start the sidecar with a demo provider (Ctrl-C ends it)
	@.venv/bin/opensearch-ml-stream demo $(ARGS)
test: .venv/installed-test ## run the tests (CI=true: with OpenSearch, Chromium and all else that they know)
	@[ "$(CI)" != true ] || .venv/bin/pytest -m '$(TESTED) and ($(WITH_SERVERS))' $(ARGS) >.with-servers.log 2>&1 & \
	$(PYTEST) -m '$(TESTED) and not ($(WITH_SERVERS))' $(ARGS); alone=$$?; \
	wait $$!; with_servers=$$?; [ "$(CI)" != true ] || cat .with-servers.log; exit $$((alone | with_servers))
slow: .venv/installed-test ## run the tests that measure real time, and those that fail once more
	.venv/bin/pytest -m slow $(ARGS) || .venv/bin/pytest -m slow --last-failed --last-failed-no-failures none $(ARGS)
stable: .venv/installed-test ## run the tests ten times, in other orders, beside two busy loops, and compare (an hour)
	.venv/bin/python scripts/stable.py $(ARGS)
unit: .venv/installed-test ## run each room's own tests and check its coverage
	@for floor in $(FLOORS); do room=$${floor%:*}; echo "== $$room: at least $${floor#*:} %"; \
		COVERAGE_FILE=.coverage.$$room $(UNIT) --cov=$$room/opensearch_ml_stream $$room/tests $(ARGS) && \
		COVERAGE_FILE=.coverage.$$room .venv/bin/coverage report --fail-under=$${floor#*:} --format=total || exit 1; done
integration: .venv/installed-test ## run the tests with real servers
	$(MAKE) test ARGS="integration_tests $(ARGS)"
check: .venv/installed-test ## check style and types
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy $(CODE) && .venv/bin/basedpyright
format: .venv/installed-test ## format the code and mend what ruff can
	.venv/bin/ruff format . && .venv/bin/ruff check --fix .
protos: .venv/installed-test ## compile the .proto files of the gRPC port, after a change of one
	.venv/bin/python scripts/protos.py
fuzz: .venv/installed-test ## try random inputs for a quarter of an hour, others each time (`make test` tries a small sample of them)
	FUZZ_FACTOR=$(or $(FUZZ_FACTOR),15) .venv/bin/pytest integration_tests/fuzz $(ARGS)
mutants: .venv/installed-test ## change the code in small ways and see whether the room tests notice (half an hour)
	.venv/bin/python scripts/mutants.py $(ARGS)
bench: .venv/installed-test ## measure what a request and a streamed token cost (python -m bench --help)
	.venv/bin/python -m bench $(ARGS)
build: .venv/installed-test ## build a wheel and a source distribution, and try them
	scripts/build.sh
versions: .venv/installed-test ## run the room tests with other Pythons and with the oldest dependencies
	PYTHON=$(PYTHON) scripts/versions.sh $(ARGS)
opensearch: ## start a real OpenSearch for the tests (ARGS=stop ends it; ARGS=ml-commons: with ML Commons; ARGS=secured: with users)
	scripts/opensearch.sh $(or $(ARGS),start)
peers: .venv/installed-test ## run the tests with a real MLServer and a real LiteLLM
	PYTHON=$(PYTHON) scripts/peers.sh && .venv/bin/pytest -m peers $(ARGS)
clients: .venv/installed-test ## run the clients of MLServer, Triton, KServe, OpenSearch, OpenAI and Anthropic against this server, and MLServer beside it
	for name in mlserver clients chat_clients; do PYTHON=$(PYTHON) scripts/peers.sh install $$name || exit 1; done
	.venv/bin/pytest -m peers integration_tests/interop/v2_clients integration_tests/interop/opensearch_clients integration_tests/interop/chat_clients \
		integration_tests/interop/side_by_side integration_tests/server/grpc_port/ml_service $(ARGS)
test-runtimes: ## run the tests of the shipped runtimes with transformers, vLLM and llama.cpp themselves (6 GB, half an hour)
	PYTHON=$(PYTHON) scripts/runtimes.sh $(ARGS)
clean: ## delete what the other targets made
	rm -rf .venv .venvs .opensearch .peers .runtimes .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* .mutants .with-servers.log dist

.venv/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with venv found; install one (Debian: python3 python3-venv) or set PYTHON." >&2; exit 1; }
	@echo "Setting up .venv with $(PYTHON) (once) ..."
	@$(PYTHON) -m venv .venv && $(PIP) --editable . $(SHOWN) && touch $@

.venv/installed-test: .venv/installed
	@echo "Installing the tools for tests and checks (once) ..."
	@$(PIP) --editable '.[test,fuzz,mutants]' $(SHOWN) && touch $@

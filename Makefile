# `make run` starts everything; ARGS are passed on: make run ARGS="--port 9600", make test ARGS="-k client -x".
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do command -v $$p >/dev/null && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
CODE := plugin rest_handlers connectors integration_tests $(wildcard bench examples)

.PHONY: run test check bench opensearch peers clean

run: .venv/installed ; @.venv/bin/opensearch-ml-stream demo $(ARGS)
test: .venv/installed-test ; .venv/bin/pytest $(ARGS)
check: .venv/installed-test ; .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy $(CODE)
bench: .venv/installed-test ; .venv/bin/python -m bench $(ARGS)
opensearch: ; scripts/opensearch.sh $(or $(ARGS),start)
peers: .venv/installed-test ; PYTHON=$(PYTHON) scripts/peers.sh && .venv/bin/pytest -m peers $(ARGS)
clean: ; rm -rf .venv .opensearch .peers .mypy_cache .ruff_cache .pytest_cache .hypothesis dist

.venv/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with venv found; install one (Debian: python3 python3-venv) or set PYTHON." >&2; exit 1; }
	@echo "Setting up .venv with $(PYTHON) (once) ..."
	@$(PYTHON) -m venv .venv && .venv/bin/pip install --quiet --disable-pip-version-check --editable . && touch $@

.venv/installed-test: .venv/installed
	@.venv/bin/pip install --quiet --disable-pip-version-check --editable '.[test]' && touch $@

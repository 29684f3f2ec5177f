# Every target explains itself in `make help`. A target that needs the environment depends on `setup`,
# which does nothing when nothing is missing.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Debian compiles its Python with profile-guided and link-time optimization (ADR 108).
PYTHON ?= $(or $(shell /usr/bin/python3 -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2>/dev/null),python3)
VENV := .venv
BIN := $(VENV)/bin
PIPECAT := .cache/pipecat
TWILIO := .cache/twilio
ELEVENLABS := .cache/elevenlabs
JAMBONZ := .cache/jambonz
WORDS := .cache/words
TWILIO_NODE := .cache/twilio-node
TIME ?= 60
CLIENT := clients/python
PYTHON_SOURCES := sip media callcontrol api fixtures tests benchmarks fuzz examples $(CLIENT)
NATIVE_PARTS := media sip
# What the product imports; fixtures has the sandbox carrier.
PRODUCT := sip media callcontrol api fixtures
NATIVE_SOURCES = $(shell find $(NATIVE_PARTS:%=%/native) cmake/fuzz cmake/bindings -name '*.cpp' -o -name '*.hpp' -o -name '*.h')
# What the native modules are built from, and nothing else: a change here, and only here, builds them again.
BUILD_INPUTS := pyproject.toml CMakeLists.txt cmake/trunkline.cmake $(shell find $(NATIVE_PARTS:%=%/native) cmake/bindings -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name CMakeLists.txt \) -not -path '*/tests/*' -not -path '*/fuzz/*' 2>/dev/null)

.PHONY: help setup run demo test-fast test test-all soak check format bench fuzz audit clean

help: ## Show this help.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: $(VENV)/.compiled ## Install what a fresh machine needs: system packages, .venv, libraries, the native build.

$(VENV)/.system:
	@PYTHON=$(PYTHON) scripts/step "checking the system packages" scripts/system-packages build
	@mkdir -p $(VENV) && touch $@

$(VENV)/.test-system: $(VENV)/.system
	@PYTHON=$(PYTHON) scripts/step "checking the system packages of the tests" scripts/system-packages test
	@touch $@

# Where the tests find pipecat; the product needs nothing of it.
$(PIPECAT)/.ready: scripts/pipecat-environment | $(VENV)/.ready
	@PYTHON=$(BIN)/python scripts/pipecat-environment $(PIPECAT)

$(TWILIO)/.ready: scripts/library-environment | $(VENV)/.ready
	@PYTHON=$(BIN)/python scripts/library-environment twilio $(TWILIO)

$(ELEVENLABS)/.ready: scripts/library-environment | $(VENV)/.ready
	@PYTHON=$(BIN)/python scripts/library-environment elevenlabs $(ELEVENLABS)

$(WORDS)/.ready: scripts/library-environment | $(VENV)/.ready
	@PYTHON=$(BIN)/python scripts/library-environment pocketsphinx $(WORDS)

$(JAMBONZ)/.ready: scripts/node-environment | $(VENV)/.test-system
	@scripts/node-environment jambonz $(JAMBONZ)

$(TWILIO_NODE)/.ready: scripts/node-environment | $(VENV)/.test-system
	@scripts/node-environment twilio $(TWILIO_NODE)

$(BIN)/pip: $(VENV)/.system
	@scripts/step "creating $(VENV)" $(PYTHON) -m venv $(VENV)
	@scripts/step "bringing pip up to date" $(BIN)/python -m pip install --quiet --upgrade pip
	@touch $(BIN)/pip

$(VENV)/.tools: $(BIN)/pip
	@scripts/step "installing the build tools" $(BIN)/pip install --quiet "scikit-build-core>=0.11" "nanobind>=2.4" ninja
	@touch $@

$(VENV)/.libraries: $(VENV)/.tools pyproject.toml
	@$(BIN)/python scripts/requirements postgres s3 test > $(VENV)/requirements.txt
	@scripts/step "installing the libraries" $(BIN)/pip install --quiet --requirement $(VENV)/requirements.txt
	@touch $@

$(VENV)/.ready: $(VENV)/.libraries $(BUILD_INPUTS)
	@scripts/step "building the native parts and installing trunkline" \
		$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

# The examples and the tests use the client for Python.
$(VENV)/.client: $(VENV)/.ready $(CLIENT)/pyproject.toml
	@scripts/step "installing the client for Python" \
		$(BIN)/pip install --quiet --editable "$(CLIENT)[agent]"
	@touch $@

# An editable installation compiles no modules, and a service may not write beside them.
$(VENV)/.compiled: $(VENV)/.ready $(VENV)/.client $(shell find $(PRODUCT) -name '*.py')
	@scripts/step "compiling the modules" $(BIN)/python -m compileall -q $(PRODUCT)
	@touch $@

run: setup ## Start a server for development, on loopback; prints an API key and a curl line that places a call.
	@$(BIN)/trunkline serve --dev

demo: setup ## Place one call end to end (SIP, RTP, WebSocket agent), show it and check its audio.
	@$(BIN)/trunkline demo

test-fast: setup ## Run the unit tests, the layering and the contract of the API in process (a minute and a half).
	@$(BIN)/python -m tests.run fast

test: setup $(VENV)/.test-system ## Run the tests, but for those that take long (ten minutes on two cores).
	@$(BIN)/python -m tests.run test

test-all: test $(PIPECAT)/.ready $(TWILIO)/.ready $(ELEVENLABS)/.ready $(TWILIO_NODE)/.ready $(JAMBONZ)/.ready $(WORDS)/.ready ## Run all tests: also the long ones, all examples, and native tests under sanitizers (half an hour).
	@$(BIN)/python -m tests.run long

# The tests of tests/faults at full length. Other lengths are named there: SOAK_ARGS="-k killed" TRUNKLINE_SOAK_KILLS=20 make soak
SOAK_S ?= 1800
soak: setup $(VENV)/.test-system $(VENV)/.bench ## Run the tests under faults at full length, and report them in docs/reliability.md; the mixed load takes SOAK_S seconds (default 1800).
	@TRUNKLINE_SOAK=1 TRUNKLINE_SOAK_S=$(SOAK_S) $(BIN)/python -m pytest tests/faults -v -s -o timeout=0 $(SOAK_ARGS); \
	status=$$?; $(BIN)/python -m tests.faults.reports; exit $$status

check: setup ## Check format, lint, types and layering.
	@$(BIN)/ruff format --check $(PYTHON_SOURCES)
	@$(BIN)/ruff check $(PYTHON_SOURCES)
	@$(BIN)/clang-format --dry-run --Werror $(NATIVE_SOURCES)
	@$(BIN)/mypy
	@$(BIN)/mypy $(CLIENT)/tests
	@$(BIN)/python -m pytest -q tests/test_layering.py tests/test_exports.py tests/test_state_tables.py

format: setup ## Rewrite the sources in the project's format.
	@$(BIN)/ruff format $(PYTHON_SOURCES)
	@$(BIN)/ruff check --fix-only --quiet $(PYTHON_SOURCES)
	@$(BIN)/clang-format -i $(NATIVE_SOURCES)

# The plots need a library that nothing else does.
$(VENV)/.bench: $(VENV)/.ready
	@$(BIN)/pip install --quiet --no-build-isolation --editable ".[bench]"
	@touch $@

bench: setup $(VENV)/.test-system $(VENV)/.bench ## Measure: CPU per call, per relayed packet and per agent stream; prints tables and writes docs/performance.md.
	@$(BIN)/python -m benchmarks.bench $(BENCH_ARGS)

# Coverage-guided where atheris can be had; else by mutation alone, which needs nothing.
$(VENV)/.fuzz: $(VENV)/.ready
	@$(BIN)/pip install --quiet "atheris>=2.3" 2>/dev/null || true
	@scripts/system-packages fuzz || true
	@touch $@

fuzz: setup $(VENV)/.fuzz ## Fuzz the parsers and state machines, in Python and in the engine, for TIME seconds each (default 60).
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then $(BIN)/python -m fuzz.guided --time $(TIME) $(FUZZ_ARGS); \
	else echo "fuzz: atheris cannot be had here; fuzzing without coverage"; $(BIN)/python -m fuzz.run --time $(TIME) $(FUZZ_ARGS); fi
	@$(BIN)/python -m fuzz.native --time $(TIME)

# Apart from .venv: what it needs is nothing that the product does.
.cache/audit/.ready:
	@$(PYTHON) -m venv .cache/audit
	@.cache/audit/bin/pip install --quiet "pip-audit>=2.9"
	@touch $@

audit: setup .cache/audit/.ready ## Ask whether any library is known to be vulnerable; needs the network.
	@scripts/audit "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" .cache/audit/bin/pip-audit

clean: ## Remove the virtual environment, builds and caches (var/, the data, stays).
	@rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A clone and two commands: `make audit` and `make test`. Both make .venv first; nothing outside
# the clone is touched but pip's cache.
PYTHON ?= python3.11
ifeq (,$(shell command -v $(PYTHON) 2>/dev/null))
PYTHON := python3
endif
BIN := .venv/bin
OUT ?= audit-out
JOBS ?= 2
# what libraries and the browser keep for the user stays in the clone. Bytecode is
# written even where the environment forbids it: else each test process compiles all modules again
HOMELESS := PYTHONDONTWRITEBYTECODE= XDG_CACHE_HOME=$(CURDIR)/.venv/kept/cache XDG_CONFIG_HOME=$(CURDIR)/.venv/kept/config

.PHONY: audit test check lint types layers docs browser slow bench peers wheel clean help

help:
	@echo "make audit   audit the embedded defaults and say where report.html is"
	@echo "make test    the quick tests"
	@echo "make check   what CI runs: lint, types, layers, documentation, all tests"
	@echo "make docs    the documentation site, into build/site"
	@echo "make wheel   the wheel in bare environments, with each extra and the oldest versions"
	@echo "make bench   the benchmarks, each one table"
	@echo "make peers   other tools on inputs whose answers are known, one table"

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[models]'
	@touch $@

.venv/developed: .venv/installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev,nuts,ray,slurm]'
	@touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv

audit: .venv/installed
	$(BIN)/evenhand audit --out $(OUT)

# the tests of the page need axe-core, which this package carries, and Debian's chromium; they skip
# with a reason where one of them cannot be had
.venv/browser: .venv/developed
	-command -v chromium >/dev/null || apt-get install --yes --quiet chromium >/dev/null 2>&1
	-$(BIN)/pip install --quiet --no-deps --target $@ -c constraints.txt axe-playwright-python

browser: .venv/browser

test: .venv/developed .venv/browser
	$(HOMELESS) $(BIN)/pytest -n $(JOBS) --dist loadfile -m "not slow"

check: lint types layers docs test slow

lint: .venv/developed
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/developed
	$(BIN)/mypy

layers: .venv/developed
	$(BIN)/lint-imports

docs: .venv/developed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

slow: .venv/developed
	$(HOMELESS) $(BIN)/pytest -n $(JOBS) -m slow

# needs the package index, 3 GB of temporary disk and 20 minutes; WHEEL="base models" for a part
wheel: .venv/developed
	$(BIN)/python tools/check_wheel.py $(WHEEL)

bench: .venv/developed
	$(BIN)/python benchmarks/vectors.py
	$(BIN)/python benchmarks/text.py
	$(BIN)/python benchmarks/posterior.py
	$(BIN)/python benchmarks/masked.py
	$(BIN)/python benchmarks/fewshot.py
	$(BIN)/python benchmarks/grid.py

# needs the package index, 3 GB of temporary disk and 20 to 45 minutes; PEERS="wefe fairlearn" for a part
peers: .venv/developed
	$(BIN)/python benchmarks/peers.py $(PEERS)

clean:
	rm -rf .venv build dist $(OUT)

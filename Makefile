# Two commands: `make book` builds the site, `make test` checks everything.
# PYTHON=python3.12 chooses the interpreter, PYODIDE=folder a local Pyodide.

PYTHON ?= python3
PYODIDE ?=
VENV := .venv
BIN := $(VENV)/bin
SITE := _build/html
PORT ?= 8000
export PYTHONUNBUFFERED := 1
# one thread a kernel: chapters and tests run side by side
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup book serve pyodide lint test bench clean

help:
	@echo "make book    build the site into $(SITE)   (PYODIDE=folder: no CDN at reading time)"
	@echo "make serve   read it on http://127.0.0.1:$(PORT)/book/index.html"
	@echo "make test    lint, types, unit, chapter and browser tests"
	@echo "make bench   measure import, laws, explorers and plans against their peers"
	@echo "make pyodide assemble .pyodide for reading and testing without the CDN"
	@echo "make clean   remove everything that was built"

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; ok = (3, 11) <= v[:2] <= (3, 13); \
	  sys.exit(0 if ok else f"Python {v[0]}.{v[1]} found; use 3.11, 3.12 or 3.13: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.txt -e '.[book,test]'
	@touch $@

book: setup
	@echo "Executing the chapters and building the site"
	@rm -rf $(SITE) _build/.doctrees _build/.jupyter_cache-*
	@PYODIDE='$(PYODIDE)' $(BIN)/python book/_ext/build.py
	@echo "The site is in $(SITE). Read it with: make serve"

serve:
	@test -f $(SITE)/index.html || { echo "No site yet: make book"; exit 1; }
	@$(PYTHON) book/_ext/serve.py $(SITE) $(PORT)

pyodide: setup
	@$(BIN)/python book/_ext/pyodide_folder.py .pyodide

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "Format with: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/mypy

# The site is read in a browser with the local Pyodide, so that no CDN is needed.
test: lint
	@$(BIN)/python book/_ext/pyodide_folder.py .pyodide || test $$? -eq 3
	$(BIN)/pytest -q -n 2 -m "not chapters and not browser"
	$(BIN)/pytest -q -n 2 -m chapters
	@if [ -f .pyodide/pyodide.mjs ]; then \
	  $(MAKE) --no-print-directory book PYODIDE=.pyodide; \
	else $(MAKE) --no-print-directory book; fi
	$(BIN)/pytest -q -n 2 -m browser

bench: setup
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/fit.py
	@$(BIN)/python benchmarks/plan.py
	@$(BIN)/python benchmarks/laws.py

clean:
	rm -rf _build $(VENV) .pyodide .pytest_cache .mypy_cache .ruff_cache .hypothesis

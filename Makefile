# One command each; every one of them sets itself up. Needed: Python 3.11 or newer with pip, and make.
#
#   make PYTHON=python3.12 test      another interpreter for the virtual environment
#   make PYTEST=-x test              options for pytest
#   make BENCH=--quick bench         options for the benchmarks

PYTHON ?= python3
PYTEST ?=
BENCH ?=

VENV := .venv
PY := $(VENV)/bin/python

# A stamp is touched only after its step has succeeded, so an interrupted step runs again, and a finished one never does
# until pyproject.toml changes. `make demo` installs the library and its program; only developers pay for the
# tools.
CREATED := $(VENV)/.created
LIBRARY := $(VENV)/.library
TOOLS := $(VENV)/.tools

# Whatever is generated comes from a script of this name and is compared by its --check.
WRITERS := $(sort $(wildcard scripts/write_*.py))

.DEFAULT_GOAL := help
.PHONY: help demo test stress check format docs pictures site bench clean

help: ## list these commands
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/'

demo: $(LIBRARY) ## show an example conversation that ran over several providers
	$(PY) examples/first_minute.py
	@echo
	$(PY) examples/demo.py

test: $(TOOLS) ## run the tests
	$(PY) -m pytest -n auto $(PYTEST)

stress: $(TOOLS) ## ten thousand streams at once, on this machine alone
	$(PY) scripts/stress.py

check: $(TOOLS) ## format, lint, types (also of the snippets), import layers, generated files in step, the site without a warning, hot paths
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m pyright --pythonpath $(PY)
	$(PY) scripts/check_types.py
	$(VENV)/bin/lint-imports --no-cache
	@for writer in $(WRITERS); do echo "$(PY) $$writer --check"; $(PY) $$writer --check || exit 1; done
	$(PY) -m sphinx -E -W --keep-going -q -b html docs docs/_build
	$(PY) scripts/check_speed.py

format: $(TOOLS) ## format the code and mend what the linter can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(TOOLS) ## write the generated files anew
	@for writer in $(WRITERS); do echo "$(PY) $$writer"; $(PY) $$writer || exit 1; done

pictures: $(TOOLS) ## take the pictures of the inspector that the documentation shows
	SEGUE_PICTURES=docs/pictures $(PY) -m pytest -q tests/inspector/test_page.py

site: $(TOOLS) ## build the documentation, into docs/_build
	$(PY) -m sphinx -E -W --keep-going -q -b html docs docs/_build
	@echo "docs/_build/index.html"

bench: $(TOOLS) ## measure what segue costs and write docs/benchmarks
	$(PY) benchmarks/run.py $(BENCH)

clean: ## remove the virtual environment and everything the tools left
	rm -rf $(VENV) .bench dist docs/_build .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find src tests examples scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "segue needs Python 3.11 or newer, and this is %s: try make PYTHON=python3.12" % sys.version.split()[0])'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(LIBRARY): pyproject.toml | $(CREATED)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(TOOLS): pyproject.toml | $(CREATED)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(LIBRARY) $@

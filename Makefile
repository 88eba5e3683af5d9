# One command each; every one of them sets itself up. Needed: Python 3.11 or newer with pip, and make.
#
#   make PYTHON=python3.12 test      another interpreter for the virtual environment
#   make PYTEST=-x test              options for pytest
#   make EXPLORE_MINUTES=60 explore  how long to look for failing examples
#   make BENCH=--quick bench         options for the benchmarks
#   make LIVE=anthropic LIVE_DOLLARS=0.10 live  which providers to ask, and what may be spent
#   make MUTANTS='--count 20 --changed main' mutants  how many faults to plant, and where
#   make PROOF=agents proof          one of the proofs of what stands: agents, handovers, state, roundtrips, golden
#   make RELEASE='--tag v0.1.0' release-check  what a release has to be

PYTHON ?= python3
PYTEST ?=
EXPLORE_MINUTES ?= 10
BENCH ?=
LIVE ?=
LIVE_DOLLARS ?= 0.05
RELEASE ?=
PROOF ?=
MUTANTS ?= --count 200

# What `make quick` runs: the core types, the laws of projection and codecs, one exchange of each protocol, the flow of a
# request.
QUICK := tests/conversation tests/framing tests/models tests/projection tests/protocols/kit tests/protocols/test_*.py \
	tests/client/flow tests/test_errors.py tests/requests/test_outbox.py tests/requests/test_prepare.py tests/histories/test_sessions.py

# The proofs of what stands, to run before and after a mechanical change: real agents through the gateway, sessions handed
# over to real programs, reasoning bound to what it was made after, recorded exchanges both ways, stored conversations.
# With SEGUE_RECORD=1 the handovers write docs/resumed.json, which docs/histories.md shows.
PROOFS := agents handovers state roundtrips golden
PROOF_agents := tests/gateway/test_real_clients.py tests/gateway/test_agent_runs.py tests/gateway/test_codex_socket.py
PROOF_handovers := tests/histories/test_real_programs.py tests/histories/test_chat_programs.py \
	tests/histories/test_program_versions.py tests/histories/test_repaired_programs.py
PROOF_state := tests/bound_state tests/requests/binding tests/gateway/test_bound_state.py tests/envelope/test_switches.py
PROOF_roundtrips := tests/protocols/test_recorded.py tests/protocols/test_recorded_streams.py tests/protocols/test_codec_laws.py
PROOF_golden := tests/golden

# Compiled files are kept regardless of the environment: the tests start hundreds of Python programs.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python

# A stamp is touched only after its step has succeeded, so an interrupted step runs again, and a finished one never does
# until pyproject.toml changes. `make demo` installs the library and its program; only developers install the
# tools.
CREATED := $(VENV)/.created
LIBRARY := $(VENV)/.library
TOOLS := $(VENV)/.tools
SITE := $(VENV)/.site

# Whatever is generated comes from a script of this name and is compared by its --check.
WRITERS := $(sort $(wildcard scripts/write_*.py))

# The steps of `make check` that run two at a time, the longest first. The guards of speed run alone, after them.
STEP_pyright := $(PY) -m pyright --pythonpath $(PY)
STEP_site := $(PY) -m sphinx -E -W --keep-going -q -b html docs docs/_build
STEP_types := $(PY) scripts/check_types.py
$(foreach writer,$(WRITERS),$(eval STEP_$(notdir $(basename $(writer))) := $(PY) $(writer) --check))
STEP_words := $(PY) scripts/check_words.py
STEP_budgets := $(PY) scripts/check_budgets.py
STEP_imports := $(VENV)/bin/lint-imports --no-cache
STEP_lint := $(PY) -m ruff check .
STEP_format := $(PY) -m ruff format --check .
STEPS := $(addprefix check-,pyright site types $(notdir $(basename $(WRITERS))) words budgets imports lint format)
# The output of a step in one piece, where make can do that.
IN_PIECES := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# A step of `make check`, with the seconds that it took.
TIMES := $(VENV)/.times
define timed
@echo '$(1)'; started=$$(date +%s); $(1) || exit 1; echo "$$(($$(date +%s) - started)) s: $(1)" >> $(TIMES)
endef

.DEFAULT_GOAL := help
.PHONY: help demo quick test explore proof mutants check $(STEPS) format docs pictures site bench facts live release-check clean

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

demo: $(LIBRARY) ## show an example conversation that ran over several providers
	@$(PY) examples/demo.py
	@echo
	@$(PY) examples/first_minute.py

quick: $(TOOLS) ## run the tests of the core with few examples, to run between edits (under a minute)
	$(PY) -m pytest -n auto -q --merge-cases --hypothesis-profile=quick -m 'not proof and not traffic' $(QUICK) $(PYTEST)

test: $(TOOLS) ## run all tests but the heavy ones; the same examples every time (about 8 minutes on two cores)
	$(PY) -m pytest -n auto --merge-cases --durations=8 --durations-min=5 $(PYTEST)

explore: $(TOOLS) ## look for failing examples of the property tests, at random, for EXPLORE_MINUTES
	$(PY) scripts/explore.py --minutes $(EXPLORE_MINUTES)

facts: $(TOOLS) ## list the oldest facts, and fail on what the newest SDKs have and nobody classified; FOLDER= also reads recordings
	$(if $(FOLDER),$(PY) -m segue facts $(FOLDER))
	$(PY) scripts/list_facts.py --newest

live: $(TOOLS) ## prove rules against the providers whose keys are set, for at most LIVE_DOLLARS
	$(PY) scripts/live.py --limit $(LIVE_DOLLARS) $(LIVE)

proof: $(TOOLS) ## run the heavy tests (a thousand kills, ten thousand streams, what has to be installed first) and the property tests with many examples
	-$(PY) -m segue local get  # without it, the tests with a real model are skipped
	$(PY) -m pytest -n logical -m '$(if $(PROOF),proof or not proof,proof or hypothesis)' --hypothesis-profile=proof \
		$(if $(PROOF),$(or $(PROOF_$(PROOF)),$(error there is no proof $(PROOF): use $(PROOFS)))) $(PYTEST)

mutants: $(TOOLS) ## plant MUTANTS small faults in the source, one at a time, and fail if the tests miss more than a tenth of them
	$(PY) scripts/mutants.py $(MUTANTS)

check: $(TOOLS) ## format, lint, types (also of the snippets), import layers, budgets, generated files in step, the site without a warning, hot paths, linear growth
	@rm -f $(TIMES)
	@$(MAKE) --no-print-directory --jobs=2 $(IN_PIECES) $(STEPS)
	$(call timed,$(PY) scripts/check_speed.py)
	$(call timed,$(PY) scripts/check_growth.py)
	@echo "What took longest:"; sort -rn $(TIMES) | head -5

$(STEPS): check-%: $(TOOLS)
	$(call timed,$(STEP_$*))

format: $(TOOLS) ## format the code and fix what the linter can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(TOOLS) ## regenerate the generated files
	@for writer in $(WRITERS); do echo "$(PY) $$writer"; $(PY) $$writer || exit 1; done

pictures: $(TOOLS) ## take the pictures of the inspector that the documentation shows
	SEGUE_PICTURES=docs/pictures $(PY) -m pytest -q tests/inspector/test_page.py

site: $(SITE) ## build the documentation, into docs/_build, with the playground if npm can fetch its runtime
	-@$(PY) scripts/build_playground.py
	$(PY) -m sphinx -E -W --keep-going -q -b html docs docs/_build
	@echo "docs/_build/index.html"

bench: $(TOOLS) ## measure what segue costs and write docs/benchmarks
	$(PY) benchmarks/run.py $(BENCH)

release-check: $(LIBRARY) ## build the package twice, compare, inspect it, install it on every interpreter; the result is in dist
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[cli,release]'
	$(PY) scripts/release_check.py $(RELEASE)

clean: ## remove the virtual environment and everything the tools left
	rm -rf $(VENV) .bench .mutants .playground dist dist-sbom docs/_build .hypothesis .import_linter_cache .pytest_cache .ruff_cache
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
	@touch $(LIBRARY) $(SITE) $@

$(SITE): pyproject.toml | $(CREATED)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

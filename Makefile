# From nothing to a BLEU score: `make repro`, or `make flow` to watch it in Prefect's UI. Tests: `make test`.
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export DVC_NO_ANALYTICS := 1
# For a user id without a name, as in docker run --user 1234: DVC needs some USER, and Prefect some HOME.
export USER := $(or $(USER),$(shell id -un 2>/dev/null))
export HOME := $(or $(HOME),$(shell getent passwd "$$(id -u)" | cut -d: -f6),/)
# DVC runs commands in $SHELL, which of a service's user is nologin.
export SHELL := /bin/sh
# Set while git runs a hook; git would then work on the repository that they name, also in copies of this one.
unexport GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_PREFIX

.PHONY: help install preset repro report runs flow sweep flow-status flow-follow flow-notify flow-stop docs test test-flows test-faults test-properties test-slow test-versions gpu-report lint check

# List the targets, each with the first sentence of its comment
help:
	@awk '/^# /{if (!about) about = substr($$0, 3); next} /^[a-z-]+:/{sub(/:.*/, ""); sub(/(:|\.|;) .*/, "", about); \
	    printf "make %-17s%s\n", $$0, about} {about = ""}' Makefile

# Make .venv and install everything; the other targets do this first
install: .venv/installed

# A link to the .venv of another clone is used as it is, with the code of this one.
LINKED := $(shell test -L .venv && echo yes)
export PYTHONPATH := $(if $(LINKED),$(CURDIR),$(PYTHONPATH))

# Without .venv on PATH, which may be of another version of Python
OUTSIDE := PATH="$${PATH\#$(CURDIR)/.venv/bin:}"

# The largest packages that a run, `convs2s translate` and `convs2s serve` import. To compile what these use takes a
# third of the time for whole packages, most of which Python never imports. DVC itself imports some only when it runs.
IMPORTED := torch numba pandas matplotlib.backends.backend_svg nltk sacrebleu.significance sacremoses fastapi uvicorn \
    dvc.cli.parser dvc.api dvc.repo.index dvc.repo.graph dvc.repo.plots networkx scmrepo.git dulwich.ignore jinja2
# Where this is set, Python would keep nothing, and compile at every start.
.venv/installed: export PYTHONDONTWRITEBYTECODE :=

# uv is several times as fast as pip (make install UV= takes pip). It reads none of pip's settings, so it is told where
# packages are; and as with pip, the newest version counts, whichever index has it.
UV := $(shell $(OUTSIDE) command -v uv)
.venv/installed: export UV_DEFAULT_INDEX := $(or $(UV_DEFAULT_INDEX),$(PIP_INDEX_URL))
.venv/installed: export UV_INDEX := $(or $(UV_INDEX),$(PIP_EXTRA_INDEX_URL))
.venv/installed: export UV_INDEX_STRATEGY := unsafe-best-match

.venv/installed: $(if $(LINKED),,pyproject.toml constraints.txt)
	@$(OUTSIDE) $(PYTHON) -c "import sys; sys.platform == 'linux' or \
	    sys.exit(f'make: expected Linux, found {sys.platform}. To use a model without it, see docs/python.md.')"
	@$(OUTSIDE) $(PYTHON) -c "import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 14) or \
	    sys.exit('$(PYTHON): expected Python 3.11 to 3.14, found %d.%d: make repro PYTHON=python3.12' % v)"
	@test "$$(.venv/bin/python -V 2>&1)" = "$$($(OUTSIDE) $(PYTHON) -V)" || rm -rf .venv
	@echo "Creating .venv$(if $(UV),, and fetching a current pip (2 MB)) ..."
	@$(OUTSIDE) $(PYTHON) -m venv .venv
# The pip that comes with Python 3.11 takes twice as long.
	@$(if $(UV),,python -m pip install --quiet --upgrade pip)
	@echo "Fetching and installing packages$(if $(UV), by uv): 0.4 GB, which take 1.7 GB in .venv; PyTorch's default wheel" \
	    "adds gigabytes of CUDA (without a GPU: export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu) ..."
	@$(if $(UV),$(UV) pip install --python .venv/bin/python,python -m pip install --no-compile) --quiet \
	    -c constraints.txt torch==2.13.0 -e '.[pipeline,dev]'
	@echo "Compiling what a run imports of them, and our loops, on all cores ..."
	@printf '%s\n' $(IMPORTED) | xargs -n 1 -P 0 \
	    python -c "import importlib, sys; importlib.import_module(sys.argv[1])"
# By default, Python takes two edits of the same length within a second for one, and runs the first.
	@python -m compileall -qq --invalidation-mode checked-hash convs2s pipelines
	@python -m pipelines.compile_loops
	@python -m pipelines.repair
	@touch $@

# Write params.yaml: make preset NAME=multi30k-en-de, with other values SET="seeds=[1,2] train.dropout=0.3".
# FORCE=1 overwrites uncommitted edits. Without NAME, this lists the presets.
preset: install
	@python -m pipelines.preset $(NAME) $(SET) $(if $(FORCE),--force)

# Run the pipeline from nothing to a BLEU score, or what has changed since, and write the report
repro: install
	@python -m pipelines.repair
	@python -m pipelines.check
	dvc repro
	@python -m pipelines.report

# The scores and data/report.html, or a comparison of several runs, data/comparison.html: make report RUNS=". HEAD~1 my-experiment"
report: install
	@python -m pipelines.report $(RUNS)

# Scores of this commit and its experiments, and the parameters that differ. For the last 5 commits: make runs N=5
runs: install
	@python -m pipelines.report.runs $(or $(N),1)

# The same stages under Prefect; override values of params.yaml with: make flow SET="train.dropout=0.3".
# REMOTE=gpu or all sends stages to other machines; PARALLEL=4 runs that many CPU stages at once.
flow: install
	@python -m pipelines.flows.machine run $(SET) $(FLOW_OPTIONS)

# A table of the paper, with its rows in parallel: make sweep TABLE=table5 SET="seeds=[1,2,3]"
sweep: install
	@python -m pipelines.flows.machine sweep '$(TABLE)' $(SET) $(FLOW_OPTIONS)

FLOW_OPTIONS = $(if $(REMOTE),--remote '$(REMOTE)') $(if $(PARALLEL),--parallel '$(PARALLEL)')

# What runs under Prefect, what waits, and for what
flow-status: install
	@python -m pipelines.flows.machine status

# Follow the log of the run that has not ended; of several, name one: make flow-follow RUN=ID
flow-follow: install
	@python -m pipelines.flows.machine follow $(RUN)

# Have the server post to a web hook, of Slack, Mattermost or your own, when a run fails; this asks for its address
flow-notify: install
	@python -m pipelines.flows.machine notify

# Stop the server and worker of `make flow`, with their runs
flow-stop: install
	@python -m pipelines.flows.machine stop

# Build the site of docs/ in site/. Warnings are errors; the site loads nothing from other hosts.
docs: install .venv/docs-installed
	python -m sphinx -c docs --fail-on-warning --keep-going -q -d site/.doctrees . site
	@! grep -rnoE --include='*.html' --include='*.css' \
	    '<(script|link|img|iframe)[^>]* (src|href)="(https?:)?//[^"]*|(url\(|@import )["'\'']?(https?:)?//[^)"]*' site
	@echo '<meta http-equiv="refresh" content="0; url=docs/README.html">' > site/index.html
	@echo "site/index.html"

.venv/docs-installed: .venv/installed
	@echo "Fetching and installing Sphinx (17 MB) ..."
	@python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

# The tests that need no GPU, network or server
test: install
	python -m pytest -n auto --dist worksteal

# The tests that take more than a few seconds
test-slow: install
	python -m pytest -n auto --dist worksteal -m "slow and not flows"

# Most flow tests; ALL=1 adds the longest, which others cover in part
test-flows: install
	python -m pytest -n 2 --dist worksteal -m "flows$(if $(ALL),, and not slow)" tests/flows

# Kill and disturb runs of the DAG; the next command must give the results of an undisturbed run
test-faults: install
	python -m pytest -n 2 --dist worksteal -m faults tests/faults

# Properties on 100,000 inputs each; the default suite tries 30
test-properties: install
	PROPERTY_EXAMPLES=100000 python -m pytest -n auto --dist worksteal tests/properties

# The tests with the oldest packages that pyproject.toml allows, and with the newest, in environments of their own
test-versions:
	.ci/test-versions

# What a GPU does, in 10 minutes: data/gpu-report/report.md. OUT= another folder; TOY=1 tries all of it on a CPU.
# PARTS="search texts" runs these again, and adds them. MODEL= a model folder and SOURCE= a text: measures their search
# as well. No network is needed.
gpu-report:
	$(PYTHON) -m benchmarks.gpu_report $(if $(OUT),--out $(OUT)) $(if $(TOY),--toy) $(if $(PARTS),--parts $(PARTS)) \
	    $(if $(MODEL),--model $(MODEL) --source $(SOURCE))

# Check style and types: ruff and mypy
lint: install
	ruff check .
	ruff format --check .
	mypy

# What to run before a commit
check: lint test

# Two commands: `make repro` (from nothing to a BLEU score) and `make test`.
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export DVC_NO_ANALYTICS := 1

.PHONY: install repro test test-slow check

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[pipeline,dev]'
	touch $@

repro: install
	dvc repro
	@python -m pipelines.report

test: install
	python -m pytest -n auto --dist loadfile

test-slow: install
	python -m pytest -n auto --dist loadfile -m slow

check: install
	ruff check .
	mypy
	python -m pytest -n auto --dist loadfile

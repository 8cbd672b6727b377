# make demo     generate, validate and (with a GPU) time a kernel for every module in samples/, and print one table
# make test     the test suite
# make test-corpus  all of the hostile and honest kernels (tests/validation/adversarial) and all of the tests of the
#               confinement, of which make test and make test-slow run a few of each kind
# make test-slow  the tests that take long: the rest of what make test runs a part of, but for test-cases and test-corpus
# make test-cases  what is marked cases or listed in tests/alike.txt, since it differs little from another test: make test and make test-slow, and with
#               them .ci/run, leave it out
# make test-opinfo  PyTorch's own sample inputs of each of its operators against the synthesizer (about an hour); writes
#               benchmarks/results/opinfo.md. OPINFO_FLAGS="--most 4 --only add,sum" is less
# make test-opinfo-sample  a fixed part of those, of which make test runs a few
# make test-models  the tests of the language models' backends, on a tiny model that it trains the first time
# make test-gpu  the tests that need a GPU: those that can share it, twelve at once, then those that time or weigh what is on it
# make lint     ruff, mypy, import-linter
# make lint-extension  Biome and tsc on vscode-extension/, which takes npm; make extension runs the same
# make bench    the scripts in benchmarks/, which write benchmarks/results/, but for those that ask for a folder of problems
# make wheel    dist/kernel_lsp-VERSION-py3-none-any.whl, from the files that git tracks, with a look into it
# make release-check  builds the wheel, installs it with torch into a fresh environment outside of the checkout, and generates
#               kernels for all samples there, as make demo does
# make extension  vscode-extension/kernel-lsp.vsix, with the server in it
# make test-editors  test-vscode and test-terminal-editors
# make test-vscode  the extension in VS Code itself, in a browser
# make install-editors  what test-editors takes, into .editors/; these targets do so, too, where it is not there
# make test-terminal-editors  a session in Neovim, Emacs and Helix, with the configuration in docs/editors.md
# make screenshots  a user's session in VS Code, whose pictures go to docs/images/, and the animated one that tools/recording.py makes
# make docs     docs/settings.md, docs/errors.md, docs/generated.md and the settings in vscode-extension/package.json, from the code
# make golden   tests/synthesis/golden/: the kernels of the samples and cases as text, to be read before it is committed
# make picture  make demo, and save its table as docs/images/demo.svg; and draw the recorded times of a GPU as such a table
#
# PYTHON=python3.12 chooses the interpreter of .venv. On a machine that has torch and triton already,
# VENV_FLAGS=--system-site-packages uses those.

# Hundreds of processes import the package, and pytest rewrites each test file: both take what was compiled before.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
VENV_FLAGS ?=
BIN := $(VENV)/bin
# tests/conftest.py says which tests stay in one process. They run in the order in which they are found: pytest-xdist would leave
# files of a single test, some of which take long, to the end, where the other process has nothing left to do.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder
INSTALLED := $(VENV)/.installed
EDITORS := $(CURDIR)/.editors
# Looking through all of the tests takes longer than some of these.
OF_MODELS = $(sort $(shell grep -rl "mark\.models" tests --include="test_*.py"))
OF_FOLDERS := $(addprefix benchmarks/,ablation.py duel.py estimates.py torch_compile.py versions.py)
MODELS_INSTALLED := $(VENV)/.installed-models

GENERATE_SAMPLES = $(BIN)/kernel-lsp generate samples --may-fail samples/sorted_unique.py::SortedUnique

.PHONY: demo test test-slow test-cases test-corpus test-opinfo test-opinfo-sample test-models test-gpu lint lint-extension bench picture golden docs wheel release-check extension install-editors test-editors test-vscode test-terminal-editors screenshots clean

demo: $(INSTALLED)
	$(GENERATE_SAMPLES)

test: $(INSTALLED)
	$(PYTEST)

test-slow: $(INSTALLED)
	$(PYTEST) -m "slow and not corpus and not cases"

test-cases: $(INSTALLED)
	$(PYTEST) -m "cases and not corpus"

test-corpus: $(INSTALLED)
	$(PYTEST) -m "slow or not slow" tests/validation/adversarial tests/confinement

test-opinfo: $(INSTALLED)
	$(BIN)/python -m tests.opinfo.run $(OPINFO_FLAGS)

test-opinfo-sample: $(INSTALLED)
	$(PYTEST) -m "slow or not slow" tests/opinfo

# One thread a process: several libraries with a pool of threads each would wait for one another.
test-models: $(MODELS_INSTALLED)
	$(BIN)/python -m tests.tiny_model.cache
	OMP_NUM_THREADS=1 $(PYTEST) -m models $(OF_MODELS)

test-gpu: $(MODELS_INSTALLED)
	$(BIN)/python -m pytest -m "gpu and not alone" -n 12 --dist loadgroup
	$(BIN)/python -m pytest -m "gpu and alone"

lint: $(INSTALLED)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy kernel_lsp
	$(BIN)/lint-imports

# Apart from lint, so that work on the Python side takes no npm.
lint-extension: export PATH := $(EDITORS)/node/bin:$(PATH)
lint-extension:
	tools/editors/install-node
	cd vscode-extension && npm ci --silent && npm run --silent check

bench: $(INSTALLED)
	for script in $(filter-out $(OF_FOLDERS),$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

golden: $(INSTALLED)
	$(BIN)/python -m tests.synthesis.golden

picture: $(INSTALLED)
	$(GENERATE_SAMPLES) --svg docs/images/demo.svg
	$(BIN)/python tools/samples_picture.py

docs: $(INSTALLED)
	$(BIN)/python tools/reference.py

wheel:
	tools/make-wheel $(PYTHON) dist

release-check:
	tools/release-check $(PYTHON)

extension: $(INSTALLED)
	tools/editors/install-node
	tools/make-extension $(EDITORS)/node/bin $(BIN)/python

# With -j 2 the editors in a terminal are tested meanwhile.
test-editors: test-vscode test-terminal-editors

test-vscode: extension
	tools/test-vscode $(BIN)/python test

# What test-editors takes from elsewhere.
install-editors:
	tools/editors/install-terminal-editors
	tools/editors/install-vscode

test-terminal-editors: $(INSTALLED)
	tools/editors/install-terminal-editors
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m editors tests/editors

screenshots: extension
	tools/test-vscode $(BIN)/python screenshots
	$(BIN)/python tools/recording.py

clean:
	rm -rf $(VENV) samples/kernels build dist *.egg-info

# llama-cpp-python comes as source: compiling it takes minutes.
$(MODELS_INSTALLED): $(INSTALLED)
	@echo "Installing the packages of the language models' backends (minutes the first time)"
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[models,kernelllm,llama-cpp,openai,dev-models]"
	touch $@

# A stamp, so that the second time takes no time.
$(INSTALLED): constraints.txt pyproject.toml tools/make-venv
	tools/make-venv $(PYTHON) $(VENV) $(VENV_FLAGS)
	touch $@

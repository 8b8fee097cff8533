# Everything a contributor runs. `make` alone lists the targets.

PYTHON ?=
export PYTHON

BIN := .venv/bin
# Tests start many processes, each of which would compile every module again without bytecode.
unexport PYTHONDONTWRITEBYTECODE
# Extra arguments for pytest: make test ARGS="-k lexer -x"
ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: ## Create or refresh .venv with the development tools (PYTHON=… picks the interpreter)
	@tools/install.sh dev

.PHONY: demo
demo: ## Show what the product does today
	@tools/install.sh demo
	@bash examples/demo.sh

.PHONY: test
test: install ## Run the tests, without the slow ones
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not browser" $(ARGS)

.PHONY: test-browser
test-browser: install ## Run the tests of the explorer in Chromium
	@tools/test-browser.sh $(ARGS)

.PHONY: explorer
explorer: ## Build the explorer's page into the package (needs Node and npm)
	cd explorer && npm ci --ignore-scripts --no-audit --no-fund && npx tsc --noEmit && node build.mjs

.PHONY: check-explorer
check-explorer: ## Build the explorer's page again and compare it (without Node: says so)
	@tools/check-explorer.sh

.PHONY: test-slow
test-slow: install ## Run the slow tests alone
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow --hypothesis-profile=new $(ARGS)

.PHONY: test-random
test-random: install ## Run the tests with random examples, others each time
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not browser" --hypothesis-profile=new $(ARGS)

.PHONY: coverage
coverage: install ## Run the tests and print which lines of the package they run
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n auto --dist loadfile -m "not slow and not browser" $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: test-crash
test-crash: install ## Kill every writer at every step, with and without a power loss
	$(BIN)/python -m pytest -n auto --dist load -m "slow or not slow" --hypothesis-profile=new tests/crash $(ARGS)

.PHONY: acceptance
acceptance: install ## Run the acceptance tests; print row, test and result, then the open rows
	@$(BIN)/python -m pytest -q -n auto --dist loadfile -m acceptance --acceptance-report $(ARGS)

.PHONY: check
check: install ## Format, lint, types, import contracts; changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

.PHONY: format
format: install ## Reformat the code and apply the safe lint fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: bench
bench: ## Run the benchmarks, beside the peers they are compared with
	@tools/install.sh bench
	@for file in benchmarks/*.py; do $(BIN)/python -m "benchmarks.$$(basename $$file .py)" || exit 1; done

.PHONY: docs
docs: install ## Regenerate the reference pages that tests compare with the code
	$(BIN)/python -m omnigraph.cli.reference > docs/user/cli.md
	$(BIN)/python -m omnigraph.error_codes > docs/user/errors.md
	$(BIN)/python -m omnigraph.api.reference > docs/user/python.md
	$(BIN)/python -m omnigraph.server > docs/user/http.md

.PHONY: site
site: install ## Build the documentation site into build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: constraints
constraints: install ## Resolve the newest versions and rewrite constraints.txt
	@tools/constraints.sh

.PHONY: clean
clean: ## Remove the environment, caches and build output
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage* build dist
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

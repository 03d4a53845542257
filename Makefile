# A thin index of cargo calls. `make help` lists the targets.

CARGO ?= cargo
DATA_DIR ?= ./.ecp
ARGS ?=

.DEFAULT_GOAL := help

run: ## Start the whole control plane (data in ./.ecp; more flags with ARGS="...")
	$(CARGO) run --locked --release --quiet --bin ecp -- up --data-dir $(DATA_DIR) $(ARGS)

demo: ## Start it and apply examples/first-volume
	$(CARGO) run --locked --release --quiet --bin ecp -- up --data-dir $(DATA_DIR) --demo $(ARGS)

test: ## Run all tests
	$(CARGO) test --locked --workspace --quiet

test-processes: ## Run the REST and contract tests with every part as a process, on a real Kubernetes API (needs Go)
	ECP_TEST_BACKEND=processes $(CARGO) test --locked --workspace --quiet --test e2e rest::
	ECP_TEST_BACKEND=processes $(CARGO) test --locked --workspace --quiet --test contract -- conformance_reject

secatest: ## Run the SECA conformance suite, whose binary ECP_TEST_SECATEST names
	$(CARGO) test --locked --quiet -p ecp-conformance --test secatest

lint: ## Formatting, clippy, licences and banned crates
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings
	@if command -v cargo-deny >/dev/null 2>&1; then cargo-deny --offline --log-level error check bans licenses sources; \
	else echo "lint: cargo-deny is not installed, licences and bans were not checked"; fi

generate: ## Refresh generated files: XRDs, reference docs, goldens
	UPDATE=1 $(CARGO) test --locked --workspace --quiet

pre-commit: lint test ## All that CI does

bench: ## Measure, and write docs/performance.md
	$(CARGO) build --locked --release --quiet --bin ecp
	$(CARGO) run --locked --release --quiet -p ecp-bench -- --ecp $$($(CARGO) metadata --format-version 1 --no-deps --offline | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/release/ecp --report docs/performance.md $(ARGS)

package: ## Build the shipped binaries and the manifests of each package into dist/
	$(CARGO) build --locked --profile dist --bin ecp --bin function-ecp --bin provider-ecp --bin provider-dummy
	$(CARGO) run --locked --profile dist --quiet --bin ecp -- manifests --out dist

docs: ## Build the API docs of all crates
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

.PHONY: run demo test test-processes secatest lint generate pre-commit bench package docs help

# Gerbang's commands. `make help` lists them.
#
#   ARGS=...        flags for gerbang dev              make run ARGS="--data /tmp/demo"
#   TESTS=...       packages to test                   make test TESTS=./gateway/store/...
#   TESTFLAGS=...   flags for go test                  make test TESTFLAGS="-run Replay -v"
#   BENCH=...       benchmarks to run                  make bench BENCH=Create
#   MINUTES=...     how long to torture                make torture MINUTES=60
#   ROWS=...        rows a table to explain queries on make plans ROWS=1000000
#   SEEDS=...       how many histories to simulate     make simulate SEEDS=10000
#   SYSTEMS=...     what to release for             make release SYSTEMS=linux/arm64
#   YES=1           install a missing PostgreSQL without asking

# Nothing here needs a C compiler. For the race detector, which does:
# make test CGO_ENABLED=1 TESTFLAGS=-race
CGO_ENABLED ?= 0
export CGO_ENABLED

# Programs, tests, vet and generators share what is compiled: other flags would compile each package again.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

TESTS ?= ./...
BENCH ?= .
MINUTES ?= 5
ROWS ?= 1000000
SEEDS ?= 10000

# How many movements the database of make bench-growth has: 10000000 need more than 30 GB and half an hour more.
MOVEMENTS ?= 1000000

# gerbang dev serves all of bin/plugins, and one provider of payments is enough there:
# the second is built beside them.
SECOND  := ./plugins/midtrans
PLUGINS := $(filter-out $(SECOND),$(patsubst %/main.go,./%,$(wildcard plugins/*/main.go)))
SCRIPTS := .ci/run $(wildcard deploy/tools/*/*.sh)
MODULES := deploy/tools/dialect deploy/tools/generate deploy/tools/manifests deploy/tools/release deploy/tools/river
TOOLS   := deploy/tools/lint deploy/tools/generators $(MODULES)

# No tables for debuggers: programs and ninety test binaries are linked for a third less processor time, and a plugin, which
# is copied and hashed at each start, is smaller by a third. Traces and profiles need none.
SMALL := -s -w

# As many packages at a time as there are cores. On a busy machine a story of gateway/e2e
# needs more than ten minutes. make lint vets all packages, tests with them.
GOTEST := go test -vet=off -ldflags='$(SMALL)' -timeout 25m

# What gerbang version says where Go itself stamps no commit, as in a worktree.
STAMP = -X github.com/seed-f006e74d/gerbang/gateway/version.revision=$(shell git rev-parse HEAD 2>/dev/null)

SQLC := go tool -modfile=deploy/tools/generate/go.mod sqlc
LINT := go tool -modfile=$(CURDIR)/deploy/tools/lint/go.mod golangci-lint run

.DEFAULT_GOAL := help
.PHONY: help run build withdb test test-long test-times test-cockroach torture faults neighbours providers replacement policy-report simulate plans lint verify clients release generate bench bench-report bench-growth

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build, then start everything on this machine: gerbang dev $(ARGS)
	@exec bin/gerbang dev $(ARGS)

build: ## Build bin/gerbang, bin/plugins/* and bin/more/*
	go build -ldflags '$(SMALL) $(STAMP)' -o bin/gerbang ./gateway/cmd/gerbang
	go build -ldflags '$(SMALL)' -o bin/plugins/ $(PLUGINS)
	go build -ldflags '$(SMALL)' -o bin/more/ $(SECOND)

# The tests' database server; a binary of its own, because `go run` passes on
# neither SIGTERM nor the exit code.
withdb:
	go build -ldflags '$(SMALL)' -o bin/tools/withdb ./gateway/database/withdb

# Tests of the whole program run what `make build` has built.
test test-long test-times test-cockroach torture faults neighbours providers replacement policy-report bench bench-report bench-growth: export GERBANG_TEST_BIN := $(CURDIR)/bin

# Matrices run a sample of their cases in the change tier, another one for each commit.
test test-cockroach: export GERBANG_TEST_SAMPLE ?= $(shell git rev-parse --short HEAD 2>/dev/null)

# Memory for processor time: a collection that comes four times as late saves programs and tests a tenth to a fifth of it.
test test-times test-cockroach: export GOGC ?= 400

test: build withdb ## Run the tests of each change on the database found (PostgreSQL is offered where there is none)
	bin/tools/withdb -- $(GOTEST) -short $(TESTFLAGS) $(TESTS)

test-long: build withdb ## Run all tests, also those that run long: whole matrices, 10,000 histories, every kill
	bin/tools/withdb -- $(GOTEST) -timeout 0 $(TESTFLAGS) $(TESTS)

test-cockroach: build withdb ## Run all tests on CockroachDB, and fail where there is none
	bin/tools/withdb -engine cockroachdb -- $(GOTEST) -short $(TESTFLAGS) $(TESTS)

test-times: build withdb ## Print what the tests of each package cost in processor and wall seconds, one package at a time
	deploy/tools/times/times.sh $(TESTS)

# It runs and kills a PostgreSQL of its own. The stories are tortured side by side.
torture: build ## Kill everything at random under loads of orders, transfers and collections for MINUTES, replace every plugin ten times, kill plugins at random, then check each of them and every rupiah
	GERBANG_TORTURE_MINUTES=$(MINUTES) go test -p 3 -run '^TestTorture' -count=1 -timeout 0 -v $(TESTFLAGS) \
		./gateway/e2e/order ./gateway/e2e/transfer ./gateway/e2e/collection ./gateway/e2e/providers

# It takes some minutes, a PostgreSQL of its own and haproxy.
faults: build ## Make every fault under load before three replicas behind haproxy, and write what came of it to deploy/README.md
	GERBANG_FAULTS_TABLE=$(CURDIR)/deploy/README.md go test -run '^TestFaultTable$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/e2e/faults

# It takes some minutes, Linux, a PostgreSQL of its own and haproxy.
neighbours: build ## Have each party do its worst beside a merchant that goes on at its pace, and write what that one got to deploy/bench/NEIGHBOURS.md
	GERBANG_NEIGHBOURS_TABLE=$(CURDIR)/deploy/bench/NEIGHBOURS.md go test -run '^TestNeighbours$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/e2e/neighbours

providers: build withdb ## Make every fault of the first of two providers of payments, and write what came of it to deploy/bench/PROVIDERS.md
	GERBANG_PROVIDERS_TABLE=$(CURDIR)/deploy/bench/PROVIDERS.md bin/tools/withdb -- \
		go test -run '^TestFirstOfTwoFails$$' -count=1 -v $(TESTFLAGS) ./gateway/e2e/providers

# It takes twenty minutes and a quiet machine.
replacement: MINUTES = 10
replacement: build withdb ## Replace every provider ten times under load, then kill plugins at random for MINUTES (10), and write what came of it to deploy/bench/REPLACEMENT.md
	GERBANG_TORTURE_MINUTES=$(MINUTES) GERBANG_REPLACEMENT_TABLE=$(CURDIR)/deploy/bench/REPLACEMENT.md bin/tools/withdb -- \
		go test -run '^TestTortureProviders$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/e2e/providers

# It takes a quarter of an hour and a quiet machine, and fails where a goal is missed.
policy-report: build withdb ## Measure how soon a limit changes and how exactly a rate holds over three replicas, what the log of decisions costs, and a policy's trial on a million of them; write deploy/bench/POLICY.md
	GERBANG_POLICY_REPORT=$(CURDIR)/deploy/bench/POLICY.md bin/tools/withdb -- \
		go test -run '^TestPolicyReport$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/e2e/policy

simulate: ## Play SEEDS histories of the gateway in memory, with every fault, and check what must always be true
	go test -run '^TestHistories$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/simulator -args -seeds=$(SEEDS)

plans: withdb ## Print what the store's reads cost on PostgreSQL tables of ROWS rows, and fail where that grows with them
	bin/tools/withdb -engine postgresql -- go test -run '^TestPlans$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/store -args -rows=$(ROWS)

lint: ## Format, the linters of .golangci.yml with vet, and vet for darwin
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }
	GOOS=darwin go vet ./...
	$(LINT)
	@set -e; for module in $(MODULES); do echo "golangci-lint in $$module"; (cd $$module && $(LINT)); done
	@if command -v shellcheck >/dev/null; then echo shellcheck $(SCRIPTS); shellcheck $(SCRIPTS); \
	else echo "shellcheck is not installed: scripts were not checked"; fi

verify: ## Prove that modules are tidy, SQL is portable and nothing generated is out of date
	go mod tidy -diff
	go mod verify
	@set -e; for module in $(TOOLS); do echo "go -C $$module mod tidy -diff"; go -C $$module mod tidy -diff; done
	@set -e; for module in $(MODULES); do go -C $$module test ./...; done
	go -C deploy/tools/dialect run . -root $(CURDIR)
	deploy/tools/generate/uptodate.sh

clients: ## Build the merchants' clients in Go, TypeScript, PHP and Python, and pack them into dist/
	go run ./sdk/merchant/pack dist

# It builds HEAD, not the files that lie about, for each of SYSTEMS.
release: ## Build the archives of a release, the lists of modules in them and SHA256SUMS into dist/release
	go -C deploy/tools/release run . -root $(CURDIR) -out dist/release $(SYSTEMS)

generate: ## Write generated code anew: protobuf, queries, documents
	go -C deploy/tools/generate run . -root $(CURDIR) sdk/pluginpb/provider.proto
	$(SQLC) generate -f gateway/store/sqlc.yaml
	go generate ./...

bench: build withdb ## Measure: the whole program beside bare database and bare gRPC, then the parts
	bin/tools/withdb -durable -engine postgresql -- go test -p 1 -run '^$$' -bench '$(BENCH)' -benchmem $(TESTFLAGS) \
		$$(grep -rl --include='*_test.go' '^func Benchmark' gateway plugins policy sdk tenants | xargs -n 1 dirname | sort -u | sed 's|^|./|')

# It takes some minutes, a quiet machine and a PostgreSQL of its own; nginx and haproxy
# where they are installed.
bench-report: build ## Measure each path in turn with nginx, haproxy, httprouter and River, and write what came of it to deploy/bench/REPORT.md
	@mkdir -p deploy/bench
	GERBANG_BENCH_REPORT=$(CURDIR)/deploy/bench/REPORT.md go test -run '^TestReport$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/e2e/report

# It takes some minutes, ten gigabytes of disk and two PostgreSQL of its own.
bench-growth: build ## Measure the same program on an empty database and on one with MOVEMENTS, look at each console page, and write deploy/bench/GROWTH.md
	GERBANG_BENCH_GROWTH=$(CURDIR)/deploy/bench/GROWTH.md go test -run '^TestGrowth$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./gateway/e2e/report -args -movements=$(MOVEMENTS)

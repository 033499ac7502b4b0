# Everything a change must pass, and what is run now and then. CONTRIBUTING.md
# tells when. Nothing but Go and a C compiler (for the race detector) is needed.

GO       ?= go
FUZZTIME ?= 2m
BASE     ?= origin/main

# Every folder with a go.mod. tools stands alone: it is not in go.work, so that
# what the tools depend on does not choose versions for the code.
MODULES := $(patsubst %/,%,$(dir $(wildcard go.mod */go.mod */*/go.mod)))
CODE    := $(filter-out tools,$(MODULES))

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.SILENT:

.PHONY: check fmt tidy build vet lint race test full bench fuzz vuln apidiff quickstart clean

## check: everything a change must pass
check: fmt tidy build vet lint race test
	echo "check: all passed"

## fmt: gofmt has nothing to change
fmt:
	echo "== gofmt"
	diff="$$("$$($(GO) env GOROOT)/bin/gofmt" -d . || true)"
	if [ -n "$$diff" ]; then echo "$$diff"; echo "fmt: not as gofmt writes it; run gofmt -w ."; exit 1; fi

## tidy: every go.mod and go.sum is as go mod tidy writes it
tidy:
	bad=0
	for m in $(MODULES); do
		echo "== go mod tidy -diff in $$m"
		(cd $$m && GOWORK=off $(GO) mod tidy -diff) || bad=1
	done
	exit $$bad

## build: every module builds on its own, as those do who import it
build:
	bad=0
	for m in $(CODE); do
		echo "== go build in $$m, alone"
		(cd $$m && GOWORK=off $(GO) build ./...) || bad=1
	done
	exit $$bad

## vet: go vet, tests included, of every module on its own
vet:
	bad=0
	for m in $(CODE); do
		echo "== go vet in $$m, alone"
		(cd $$m && GOWORK=off $(GO) vet ./...) || bad=1
	done
	exit $$bad

## lint: staticcheck of every module
lint: bin/staticcheck
	bad=0
	for m in $(CODE); do
		echo "== staticcheck in $$m"
		(cd $$m && "$(CURDIR)/bin/staticcheck" ./...) || bad=1
	done
	exit $$bad

## race: all tests of all modules, under the race detector and in random order
race:
	echo "== go test -race"
	if [ "$$($(GO) env CGO_ENABLED)" != 1 ] || ! command -v "$$($(GO) env CC)" >/dev/null; then
		echo "race: skipped: the race detector needs cgo and a C compiler; the tests run without it below"
		[ "$${CI:-}" != true ]
		exit
	fi
	$(GO) test -race -shuffle=on -timeout=12m work

## test: all tests again without the race detector, which leaves out the ceilings of allocations and memory and shortens counts
test:
	echo "== go test"
	$(GO) test -shuffle=on -timeout=10m work

## full: the long counts, before a release: a million arrivals for each algorithm, every test ten times
full: check
	$(GO) test -timeout=60m ./limiter ./heedtest -args -arrivals=1000000
	$(GO) test -race -shuffle=on -count=10 -timeout=120m work

## bench: all benchmarks
bench:
	$(GO) test -run='^$$' -bench=. -benchmem work

## fuzz: every fuzz target for FUZZTIME
fuzz:
	for p in $$($(GO) list work); do
		for f in $$($(GO) test -list='^Fuzz' $$p | grep '^Fuzz' || true); do
			echo "== $$p $$f for $(FUZZTIME)"
			$(GO) test -run='^$$' -fuzz="^$$f\$$" -fuzztime=$(FUZZTIME) $$p
		done
	done

## vuln: known vulnerabilities in what the code reaches; asks the Go vulnerability database
vuln: bin/govulncheck
	bad=0
	for m in $(CODE); do
		echo "== govulncheck in $$m"
		(cd $$m && GOWORK=off "$(CURDIR)/bin/govulncheck" ./...) || bad=1
	done
	exit $$bad

## apidiff: what changed in the exported API since BASE
apidiff: bin/apidiff
	export GOWORK=off
	module="$$($(GO) list -m)" at="$$(mktemp -d)"
	trap 'git worktree remove --force "$$at/base"; rm -r "$$at"' EXIT
	git worktree add --quiet --detach "$$at/base" "$(BASE)"
	(cd "$$at/base" && "$(CURDIR)/bin/apidiff" -m -w "$$at/base.api" "$$module")
	bin/apidiff -m "$$at/base.api" "$$module"

## quickstart: the comparison of the README
quickstart:
	$(GO) run ./examples/quickstart

## clean: remove what the targets built
clean:
	rm -rf bin

bin/staticcheck: tools/go.mod tools/go.sum
	cd tools && GOWORK=off $(GO) build -o ../$@ honnef.co/go/tools/cmd/staticcheck

bin/govulncheck: tools/go.mod tools/go.sum
	cd tools && GOWORK=off $(GO) build -o ../$@ golang.org/x/vuln/cmd/govulncheck

bin/apidiff: tools/go.mod tools/go.sum
	cd tools && GOWORK=off $(GO) build -o ../$@ golang.org/x/exp/cmd/apidiff

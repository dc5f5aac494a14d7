# weir: what one types.  Everything here runs on Debian 12 with Go and make.
#
#   make          builds ./weir
#   make test     installs what the suite needs and is missing, then runs all of it
#   make fuzz     fuzzes every parser for FUZZTIME each
#   make crash    kills weir and its databases some hundred times under load, and looks for every message
#   make hostile  swaps 400 hostile modules into a running router
#   make release  builds dist/ for every platform
#   make screenshots  draws docs/images again, from the output of the real program
#   make guests   builds the stock filters again (see filters/guests.mk)

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
FUZZTIME ?= 20s
PLATFORMS = linux/amd64 linux/arm64 linux/arm linux/riscv64

.PHONY: build test deps check cross release screenshots fuzz crash hostile clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o weir ./cmd/weir

include filters/guests.mk

# What the tests talk to: a real PostgreSQL, and the toolchains that guests are written for.
# gcc is for the race detector alone.
PACKAGES = gcc libc6-dev postgresql-15 pgbouncer clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32 wabt \
	rustc cargo libstd-rust-dev-wasm32 nim ldc

# The file in /etc keeps Debian's package from starting a server of its own; pgbouncer's is stopped again.
#
# npm comes with nodejs where that is not Debian's, so it is looked for by its name.
deps:
	@missing=; for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	command -v npm >/dev/null || missing="$$missing nodejs npm"; \
	[ -z "$$missing" ] || { \
		echo "installing$$missing"; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		$$sudo mkdir -p /etc/postgresql-common && \
		{ [ -e /etc/postgresql-common/createcluster.conf ] || \
			echo "create_main_cluster = false" | $$sudo tee /etc/postgresql-common/createcluster.conf >/dev/null; } && \
		$$sudo apt-get update -q && \
		$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing && \
		case "$$missing" in *pgbouncer*) $$sudo systemctl disable -q --now pgbouncer 2>/dev/null || true;; esac; }
	@asc=filters/sdk/assemblyscript; [ $$asc/node_modules/.package-lock.json -nt $$asc/package-lock.json ] || \
		npm ci --prefix $$asc --no-audit --no-fund --loglevel=error

check:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted" >&2; exit 1; }
	$(GO) vet ./...

# Without the race detector: the cases of guests, which run one after the other through code whose races the tests of wasmhost
# look for, the tests of the program, which start it as a process of its own hundreds of times, and once more those of
# router, some of which count allocations that the detector adds to.
test: deps check guests-check cross
	$(GO) test -race -timeout 14m $$($(GO) list ./... | grep -v -e /filters/conformance -e /cmd/weir)
	$(GO) test -timeout 14m ./router ./filters/conformance ./cmd/weir

# One static binary for each platform; the tests run on this one.
cross:
	@for p in $(PLATFORMS); do \
		echo "build $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/weir || exit 1; \
	done

release:
	@for p in $(PLATFORMS); do \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o dist/weir-$${p%/*}-$${p#*/} ./cmd/weir || exit 1; \
	done
	@ls -l dist

screenshots:
	docs/images/draw.sh

fuzz:
	@$(GO) list -f '{{$$d := .}}{{range .TestGoFiles}}{{$$d.ImportPath}} {{$$d.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$d.ImportPath}} {{$$d.Dir}}/{{.}}{{"\n"}}{{end}}' ./... | \
	while read -r pkg file; do \
		for f in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# A few dozen kills are in the suite. CRASH says how many there are in all here; by hand also: -crash-seed N.
CRASH ?= 300
crash: deps
	WEIR_LONG_TESTS=1 $(GO) test -timeout 30m -run '^Test(LedgerBalances|EveryMessageArrivesOnce)' ./router/routertest
	WEIR_LONG_TESTS=1 $(GO) test -timeout 60m -v -run '^(TestServerKilledAndSessionsEndedUnderLoad|TestCutAtEveryMessageLosesAndDoublesNothing|TestRouterLosesAndDoublesNothingByCuts)$$' ./router/sqlstore
	$(GO) test -timeout 60m -v -run '^Test(KilledWeir|CopiesOf|AnOlderState|ADatabaseThatIsPutBack|AServerThatForgets|AKillCosts)' ./cmd/weir -crash $(CRASH)

# A handful of them is in the suite. By hand also: -hostile-seed N, -hostile-only TEXT.
hostile: deps
	$(GO) test -timeout 40m -run TestHostileModulesThroughARunningRouter -v ./wasmhost -hostile 400

clean:
	rm -rf weir dist

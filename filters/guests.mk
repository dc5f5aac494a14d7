# Guests: the WebAssembly modules of this repository. Included by the Makefile at the top; make runs there.
#
#   make guests         builds the stock filters into filters/stock/*/*.wasm, which are committed and embedded
#   make guests-check   builds them again elsewhere and compares: what ships is what its source says; and vets the Go
#                       guests, which go vet ./... passes over
#
# The bytes depend on the compiler, so it is named with its version: Debian 12's clang-14, lld-14 and wasi-libc.

GO    ?= go
CLANG ?= clang-14
GUEST_CFLAGS = --target=wasm32-wasi -mexec-model=reactor -Os -s -Wall -Wextra -Werror \
	-Wl,-z,stack-size=65536,--stack-first -I filters/sdk/c
STOCK = severity redact

.PHONY: guests guests-check

guests:
	@for f in $(STOCK); do \
		$(CLANG) $(GUEST_CFLAGS) -o filters/stock/$$f/$$f.wasm filters/stock/$$f/$$f.c && \
		chmod 644 filters/stock/$$f/$$f.wasm || exit 1; \
	done

guests-check:
	@d=$$(mktemp -d) && trap 'rm -rf "$$d"' EXIT && for f in $(STOCK); do \
		$(CLANG) $(GUEST_CFLAGS) -o $$d/$$f.wasm filters/stock/$$f/$$f.c && \
		cmp $$d/$$f.wasm filters/stock/$$f/$$f.wasm || { \
			echo "filters/stock/$$f/$$f.wasm is not what $$f.c builds: run make guests and commit it" >&2; exit 1; }; \
	done
	@GOOS=wasip1 GOARCH=wasm $(GO) vet ./filters/sdk/... ./filters/conformance/script_go ./examples/filters/...

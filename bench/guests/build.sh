#!/bin/sh
# build.sh -- builds the committed guests of the benchmarks again (Debian 12: clang-14, lld-14, wasi-libc,
# libclang-rt-14-dev-wasm32, wabt; rustc, cargo and libstd-rust-dev-wasm32; npm install in filters/sdk/assemblyscript).
set -eu
cd "$(dirname "$0")"
c() {
    model=$1 out=$2 source=$3
    ${CLANG:-clang-14} --target=wasm32-wasi $model -O2 -s -Wall -Wextra -Werror \
        -Wl,-z,stack-size=65536,--stack-first -I ../../filters/sdk/c -o "$out" "$source"
}
c -mexec-model=reactor touch.wasm touch.c
c -mexec-model=reactor work/c.wasm work/c/work.c
c "-mexec-model=reactor -Wl,--export=malloc,--export=free" foreign/fluentbit.wasm foreign/fluentbit.c
c -mexec-model=reactor foreign/extism.wasm foreign/extism.c
c -mexec-model=command foreign/stdio.wasm foreign/stdio.c
for f in *.wat; do wat2wasm "$f"; done
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
(cd work/rust && PATH=/usr/bin:$PATH CARGO_TARGET_DIR=$target CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-14 \
    cargo build --offline --release --target wasm32-unknown-unknown)
cp "$target"/wasm32-unknown-unknown/release/filter.wasm work/rust.wasm
rm -f work/rust/Cargo.lock
../../filters/sdk/assemblyscript/node_modules/.bin/asc work/assemblyscript/work.ts -O3 --runtime incremental \
    --use abort= -o work/assemblyscript.wasm
chmod 644 *.wasm work/*.wasm foreign/*.wasm

#!/bin/sh
# build.sh -- builds the committed guest of the benchmarks again (Debian 12: clang-14, lld-14, wasi-libc).
set -eu
cd "$(dirname "$0")"
${CLANG:-clang-14} --target=wasm32-wasi -mexec-model=reactor -O2 -s -Wall -Wextra -Werror \
    -Wl,-z,stack-size=65536,--stack-first -I ../../filters/sdk/c -o touch.wasm touch.c
chmod 644 touch.wasm

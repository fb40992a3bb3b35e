#!/bin/sh
# Builds the core module. `kitbag build` runs this script, and makes the module a component with wit/.
set -eu
mkdir -p build
# PyPI's package ziglang has zig as `python-zig`. `CC` may also be the clang of a WASI SDK.
zig=$(command -v zig || command -v python-zig || echo zig)
${CC:-$zig cc} --target=wasm32-wasi -mexec-model=reactor -O2 -s -Wall -Wextra -o build/my_tool.wasm tool.c kitbag.c

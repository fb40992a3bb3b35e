#!/bin/sh
# Builds the core module. `kitbag build` runs this script, and makes the module a component with wit/.
set -eu
mkdir -p build
# `cabi_realloc` in kitbag.go needs the linker's permission to name `runtime.sbrk`.
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w -checklinkname=0' -o build/my_tool.wasm .

#!/usr/bin/env bash
# Builds build/{{name}}.wasm. Needs Python 3; the compiler (zig's clang, 90 MB) comes from PyPI into build/tools, or from CC:
#
#     CC="clang --target=wasm32-wasi --sysroot=/opt/wasi-sysroot" ./build.sh
#
# What comes out is a core module that says which world it exports; `reprise policy build` makes a component of it, and so do
# `wasm-tools component new` and `jco new`.
set -euo pipefail
cd "$(dirname "$0")"
tools=${REPRISE_TOOLS:-$PWD/build/tools}/c

if [ -z "${CC:-}" ]; then
    if [ ! -x "$tools/bin/zig-cc" ]; then
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check ziglang==0.17.1
        printf '#!/bin/sh\nexec "%s/bin/python" -m ziglang cc -target wasm32-wasi "$@"\n' "$tools" >"$tools/bin/zig-cc"
        chmod +x "$tools/bin/zig-cc"
    fi
    CC=$tools/bin/zig-cc
fi
mkdir -p build
# A stack of 64 KiB: the default of 1 MiB would be most of a small policy's memory.
$CC -mexec-model=reactor -O2 -flto -s -Wall -Wextra -Wl,-z,stack-size=65536 -o "build/{{name}}.wasm" \
    policy.c bindings/cache_policy.c bindings/cache_policy_component_type.o

#!/usr/bin/env bash
# Builds the component build/{{name}}.wasm. Needs Node 20 or later with npm; componentize-qjs (the QuickJS backend of
# `jco componentize`), which brings the interpreter (1.7 MB of the component), comes from npm into build/tools.
set -euo pipefail
cd "$(dirname "$0")"
tools=${REPRISE_TOOLS:-$PWD/build/tools}/js

if [ ! -x "$tools/node_modules/.bin/componentize-qjs" ]; then
    npm install --silent --no-audit --no-fund --no-save --prefix "$tools" componentize-qjs@0.4.5
fi
mkdir -p build
# A policy imports nothing: what the interpreter asks of a system is replaced by traps.
"$tools/node_modules/.bin/componentize-qjs" --wit wit --world cache-policy --js policy.js --stub-wasi --sync \
    --output "build/{{name}}.wasm"

#!/usr/bin/env bash
# Builds the component build/{{name}}.wasm. Needs Python 3.10 or later; componentize-py, which brings its own Python (18 MB of the
# component), comes from PyPI into build/tools.
set -euo pipefail
cd "$(dirname "$0")"
tools=${REPRISE_TOOLS:-$PWD/build/tools}/python

if [ ! -x "$tools/bin/componentize-py" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check componentize-py==0.25.1
fi
mkdir -p build
# A policy imports nothing: what Python asks of a system is replaced by traps.
"$tools/bin/componentize-py" --quiet --wit-path wit --world cache-policy componentize --stub-wasi policy --output "build/{{name}}.wasm"

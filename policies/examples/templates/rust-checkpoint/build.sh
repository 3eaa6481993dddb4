#!/usr/bin/env bash
# Builds build/{{name}}.wasm. Needs Rust 1.95 with the target that `rustup target add wasm32-unknown-unknown` installs.
#
# What comes out is a core module that says which world it exports; `reprise policy build` makes a component of it, and so do
# `wasm-tools component new` and `jco new`.
set -euo pipefail
cd "$(dirname "$0")"

cargo build --release --target wasm32-unknown-unknown --target-dir build/target
name='{{name}}'
cp "build/target/wasm32-unknown-unknown/release/${name//-/_}.wasm" "build/$name.wasm"

#!/bin/sh
# Builds the browser package and expects, in headless Chromium, the 8 tokens that the native binary writes.
# The last line says how many cases passed and failed.
set -eu
cd "$(dirname "$0")/.."

for program in chromium node npm; do
    command -v "$program" >/dev/null && continue
    echo "There is no $program here: sudo apt-get install --no-install-recommends chromium nodejs npm" >&2
    exit 1
done

wasm/build.sh
npm ci --prefix wasm --silent --no-fund --no-audit

prompt='Once upon a time, there was a little fox named'
native=wasm/pkg/native.json
cargo run --locked --release --quiet -- generate --json --temperature 0 --max-tokens 8 --prompt "$prompt" >"$native"
CHROMIUM=$(command -v chromium) node wasm/test.mjs "$native" "$prompt"

#!/bin/sh
# Builds the browser package and expects, in headless Chromium, the 8 tokens that the native binary writes.
# The last line says how many cases passed and failed.
set -eu
cd "$(dirname "$0")/.."

# install PROGRAM DEBIAN_PACKAGE...: root on Debian installs what is missing, anyone else reads the line to run.
install() {
    program=$1
    shift
    command -v "$program" >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -y -q --no-install-recommends "$@"
    else
        echo "No $program here: sudo apt-get install --no-install-recommends $*" >&2
        exit 1
    fi
}

install chromium chromium
install node nodejs
install npm npm
wasm/build.sh
(cd wasm && npm ci --silent --no-fund --no-audit)

prompt='Once upon a time'
native=wasm/pkg/native.json
cargo run --locked --release --quiet -- generate --json --temperature 0 --max-tokens 8 --prompt "$prompt" >"$native"
CHROMIUM=$(command -v chromium) node wasm/test.mjs "$native" "$prompt"

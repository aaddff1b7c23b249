#!/bin/sh
# Builds what a page needs into wasm/pkg: samara_wasm.js and samara_wasm_bg.wasm.
#
# A toolchain that has the target wasm32-unknown-unknown is used as it is. Without it, Debian's rustc-web builds
# the standard library from rust-web-src; root installs those packages, anyone else reads which ones are missing.
set -eu
cd "$(dirname "$0")/.."

triple=wasm32-unknown-unknown
mkdir -p "${CARGO_TARGET_DIR:-target}"
CARGO_TARGET_DIR=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
export CARGO_TARGET_DIR

has_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]
}

newest_wasm_ld() {
    ls /usr/bin/wasm-ld-* 2>/dev/null | sort -V | tail -n 1
}

has_debian_toolchain() {
    [ -x /usr/bin/rustc ] && [ -n "$(newest_wasm_ld)" ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library" ]
}

install_debian_toolchain() {
    lld=$(apt-cache search --names-only '^lld-[0-9]+$' 2>/dev/null | cut -d ' ' -f 1 | sort -V | tail -n 1)
    packages="rustc-web rust-web-src ${lld:-lld-22}"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get install -y -q --no-install-recommends $packages
    else
        echo "No Rust target $triple here. Either of these brings one:" >&2
        echo "  rustup target add $triple" >&2
        echo "  sudo apt-get install --no-install-recommends $packages" >&2
        exit 1
    fi
}

# A visitor downloads this module, so it is built for size.
build_module() {
    CARGO_PROFILE_RELEASE_OPT_LEVEL=s cargo build --locked --release --target "$triple" -p samara-wasm "$@"
}

build_module_with_debian() (
    has_debian_toolchain || install_debian_toolchain
    RUSTC=/usr/bin/rustc
    RUSTC_BOOTSTRAP=1
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$(newest_wasm_ld)
    export RUSTC RUSTC_BOOTSTRAP CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER
    build_module -Zbuild-std=std,panic_abort
)

if has_target; then build_module; else build_module_with_debian; fi
cargo run --locked --release --quiet --manifest-path wasm/bindgen/Cargo.toml -- \
    "$CARGO_TARGET_DIR/$triple/release/samara_wasm.wasm" wasm/pkg

#!/bin/sh
# Builds what the page needs into wasm/pkg: samara_wasm.js and samara_wasm_bg.wasm.
#
# A toolchain that has the target wasm32-unknown-unknown is used as it is. Without the target, Debian's rustc-web
# builds the standard library too, from rust-web-src.
set -eu
cd "$(dirname "$0")/.."

triple=wasm32-unknown-unknown
mkdir -p "${CARGO_TARGET_DIR:-target}"
CARGO_TARGET_DIR=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
export CARGO_TARGET_DIR

has_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]
}

has_debian_toolchain() {
    [ -x /usr/bin/rustc ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library" ] && [ -n "$(newest_linker)" ]
}

newest_linker() {
    find /usr/bin -name 'wasm-ld-*' | sort -V | tail -n 1
}

# A visitor downloads this module, so it is built for size.
build_module() {
    CARGO_PROFILE_RELEASE_OPT_LEVEL=s cargo build --locked --release --target "$triple" -p samara-wasm "$@"
}

build_module_with_debian() (
    RUSTC=/usr/bin/rustc
    RUSTC_BOOTSTRAP=1
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$(newest_linker)
    export RUSTC RUSTC_BOOTSTRAP CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER
    build_module -Zbuild-std=std,panic_abort
)

write_bindings() {
    cargo run --locked --release --quiet --manifest-path wasm/bindgen/Cargo.toml -- \
        "$CARGO_TARGET_DIR/$triple/release/samara_wasm.wasm" wasm/pkg
}

if has_target; then
    build_module
elif has_debian_toolchain; then
    build_module_with_debian
else
    echo "There is no Rust target $triple here. Either of these brings one:" >&2
    echo "  rustup target add $triple" >&2
    echo "  sudo apt-get install --no-install-recommends rustc-web rust-web-src lld-22" >&2
    exit 1
fi
write_bindings

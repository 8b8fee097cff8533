#!/usr/bin/env bash
# The product as it stands, on the workshop example. Every command is shown before it runs.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp examples/workshop/* "$work"
cd "$work"

bold=$'\033[1m' plain=$'\033[0m'
[[ -t 1 && -z "${NO_COLOR:-}" ]] || bold='' plain=''

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() { printf '$ %s\n' "$*"; "$@"; }
run_failing() {
    printf '$ %s\n' "$*"
    if "$@"; then
        echo "this command was expected to fail" >&2
        exit 1
    fi
}

say "A schema is code."
run cat schema.pg

say "Queries are code, checked against it."
run omnigraph lint --schema schema.pg --query queries.gq

say "A mistake is shown where it stands, with what was probably meant."
run_failing omnigraph lint --schema schema.pg --query mistake.gq
run omnigraph errors T6

say "Both languages have one layout."
run omnigraph fmt --diff untidy.gq

say "From text to a typed plan, a stored-query entry and a migration plan, in Python."
run python library.py

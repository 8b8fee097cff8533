#!/bin/sh
# Resolves the dependencies afresh and writes the exact versions to constraints.txt.
#
# Runs on the interpreter of .venv. Every pin has to install on all supported Python versions;
# CONTRIBUTING.md says how to check that.
set -eu

cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

.venv/bin/python -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check '.[all,dev,bench]'
{
    echo '# Exact versions of everything the environment holds. Regenerate with `make constraints`.'
    "$scratch/venv/bin/python" -m pip freeze --exclude omnigraph
} >"$scratch/constraints.txt"
cp "$scratch/constraints.txt" constraints.txt
echo "constraints.txt holds $(grep -c == constraints.txt) pins."

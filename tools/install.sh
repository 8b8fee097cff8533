#!/bin/sh
# Creates or refreshes .venv with the package, its dependencies and the development tools.
#
# Does nothing when the environment already matches pyproject.toml and constraints.txt. Rebuilds
# it from nothing when its interpreter no longer runs, is of a version the package does not
# support, or differs from an interpreter named in PYTHON.
set -eu

cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/.installed
supported='3.11, 3.12 or 3.13'

# Prints the version of an interpreter when it is one we support; fails otherwise.
version_of() {
    "$1" -c 'import sys
v = sys.version_info
assert (3, 11) <= v[:2] <= (3, 13)
print(".".join(map(str, v[:3])))' 2>/dev/null
}

choose_python() {
    if [ -n "${PYTHON:-}" ]; then
        version_of "$PYTHON" >/dev/null || {
            echo "PYTHON=$PYTHON is not a working Python $supported." >&2
            return 1
        }
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if version_of "$candidate" >/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python $supported found. Install one, or name it: make install PYTHON=/path/to/python3" >&2
    return 1
}

# What the stamp must say for the environment to count as current. The folder is part of it
# because a virtual environment does not survive being moved or copied. The settings of the
# checkers, from [tool.ruff] on, are not: they change nothing that is installed.
wanted() {
    pwd
    sed '/^\[tool\.ruff\]/,$d' pyproject.toml
    cat constraints.txt
}

installed=$(version_of $venv/bin/python || true)
if [ -n "$installed" ] && [ -n "${PYTHON:-}" ] && [ "$(version_of "$PYTHON" || true)" != "$installed" ]; then
    installed=
fi

if [ -n "$installed" ] && [ -x $venv/bin/omnigraph ] && [ -f $stamp ] && wanted | cmp -s - $stamp; then
    echo "$venv is up to date (Python $installed)."
    exit 0
fi

# A moved folder, an interrupted creation or a lost pip: start again rather than patch.
if [ -z "$installed" ] || ! head -n 1 $stamp 2>/dev/null | grep -qxF "$(pwd)" \
    || ! $venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(choose_python)
    echo "Creating $venv with Python $(version_of "$python")."
    rm -rf $venv
    "$python" -m venv $venv
fi

pwd >$stamp
echo "Installing omnigraph and its tools."
$venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
wanted >$stamp
echo "$venv is ready (Python $(version_of $venv/bin/python))."

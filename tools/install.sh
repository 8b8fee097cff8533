#!/bin/sh
# Creates or refreshes .venv with the package, its dependencies and what a level needs:
#
#   tools/install.sh demo     the package with all extras
#   tools/install.sh dev      the tools for tests and checks too (the default)
#   tools/install.sh bench    the peers of the benchmarks too
#
# Does nothing when the environment already matches pyproject.toml and constraints.txt at this level
# or a higher one; never goes back to a lower level. Rebuilds the environment from nothing when its
# interpreter no longer runs, is of a version the package does not support, or differs from an
# interpreter named in PYTHON.
set -eu

cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/.installed
supported='3.11, 3.12 or 3.13'
wanted_level=${1:-dev}

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

# The rank of a level; 0 for none.
rank() {
    case $1 in
    demo) echo 1 ;;
    dev) echo 2 ;;
    bench) echo 3 ;;
    *) echo 0 ;;
    esac
}

# What the stamp must say behind its level for the environment to count as current. The folder is part
# of it because a virtual environment does not survive being moved or copied. The settings of the
# checkers, from [tool.ruff] on, are not: they change nothing that is installed.
content() {
    pwd
    sed '/^\[tool\.ruff\]/,$d' pyproject.toml
    cat constraints.txt
}

# Shows what pip downloads and builds, one line each.
show() {
    awk '
        /^ +(Downloading|Using cached) / && !/\.metadata/ {
            verb = $1 == "Using" ? "cached" : "downloaded"
            file = verb == "cached" ? $3 : $2
            size = verb == "cached" ? $4 " " $5 : $3 " " $4
            sub(/ +$/, "", size)
            sub(/.*\//, "", file); sub(/-(py|cp)[0-9].*/, "", file); sub(/\.tar\.gz$/, "", file)
            print "  " file " " size
        }
        /^ +Building wheel for .*: started/ { print "  building " $4 }
        /^Installing collected packages:/ { print "  unpacking " NF - 3 " packages" }
        { fflush() }'
}

[ "$(rank "$wanted_level")" -gt 0 ] || {
    echo "unknown level '$wanted_level'; use demo, dev or bench" >&2
    exit 2
}

installed=$(version_of $venv/bin/python || true)
if [ -n "$installed" ] && [ -n "${PYTHON:-}" ] && [ "$(version_of "$PYTHON" || true)" != "$installed" ]; then
    installed=
fi

# A moved folder, an interrupted creation or a lost pip: start again rather than patch.
if [ -z "$installed" ] || ! sed -n 2p $stamp 2>/dev/null | grep -qxF "$(pwd)" \
    || ! $venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(choose_python)
    echo "Creating $venv with Python $(version_of "$python")."
    rm -rf $venv
    "$python" -m venv $venv
    printf 'none\n%s\n' "$(pwd)" >$stamp
fi

level=$(head -n 1 $stamp)
if [ "$(rank "$level")" -ge "$(rank "$wanted_level")" ]; then
    if [ -x $venv/bin/omnigraph ] && { echo "$level"; content; } | cmp -s - $stamp; then
        echo "$venv is up to date (Python $installed)."
        exit 0
    fi
    wanted_level=$level
fi

case $wanted_level in
demo) extras=all about='omnigraph with all extras: 1.3 GB, usually two to three minutes' ;;
dev) extras=all,dev about='omnigraph with all extras and the development tools: 2 GB, usually three to four minutes' ;;
bench) extras=all,dev,bench about='omnigraph with all extras, the development tools and the peers of the benchmarks: 2.3 GB, usually four minutes' ;;
esac
echo "Installing $about, less for what is there or cached."
printf 'none\n%s\n' "$(pwd)" >$stamp
status=$venv/.pip-status
{
    result=0
    $venv/bin/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[$extras]" || result=$?
    echo $result >$status
} | show
[ "$(cat $status)" = 0 ] || {
    echo "The installation failed; the lines above say why. \`make install\` tries again." >&2
    exit 1
}
# Commands start quicker when nothing has to be compiled first.
[ ! -d src/omnigraph ] || $venv/bin/python -m compileall -q src/omnigraph
{ echo "$wanted_level"; content; } >$stamp
echo "$venv is ready (Python $(version_of $venv/bin/python))."

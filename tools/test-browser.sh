#!/usr/bin/env bash
# Runs the tests that need a browser. With --find it prints the path of the browser and does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

find_browser() {
    local name
    for name in "${OMNIGRAPH_TEST_BROWSER:-}" chromium chromium-browser google-chrome; do
        [ -n "$name" ] && command -v "$name" && return
    done
    return 1
}

if [ "${1:-}" = --find ]; then
    find_browser
    exit
fi
if ! browser=$(find_browser); then
    echo "The browser tests did not run: Chromium is missing (on Debian: apt-get install chromium)."
    exit 0
fi
OMNIGRAPH_TEST_BROWSER=$browser exec .venv/bin/python -m pytest -p no:randomly -m browser tests/browser "$@"

#!/usr/bin/env bash
# Builds the explorer's page again, in a folder of its own, and compares it with the one of the package.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "The explorer's page was not built again: Node and npm are missing (on Debian: apt-get install nodejs npm)."
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/explorer"
cp -R explorer/src explorer/build.mjs explorer/package.json explorer/package-lock.json explorer/tsconfig.json \
    explorer/.npmrc "$scratch/explorer"
cd "$scratch/explorer"
npm ci --ignore-scripts --no-audit --no-fund --silent
npx tsc --noEmit
node build.mjs "$scratch/page"
cd - >/dev/null
if ! diff -r "$scratch/page" src/omnigraph/server/page >/dev/null; then
    echo "The page in src/omnigraph/server/page is not what its sources make: run \`make explorer\`." >&2
    exit 1
fi
echo "The explorer's page is what its sources make."

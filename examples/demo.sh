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

say "A graph is created from the schema and filled with one atomic load."
run omnigraph init --schema schema.pg workshop.omni
run omnigraph load workshop.omni --data seed.jsonl --mode append -m "the workshop as we found it"

say "Bad records are all reported, and nothing of the load is visible."
run_failing omnigraph load workshop.omni --data damaged.jsonl --mode append

say "Queries follow edges, negate, count and order."
run omnigraph query workshop.omni --query queries.gq --name taught_by --params '{"who": "ada"}'
run omnigraph query workshop.omni --query queries.gq --name busiest_sheds

say "One query searches, filters and ranks. No vectors were loaded here, so its words decide alone."
export OMNIGRAPH_EMBEDDINGS_MOCK=1
run omnigraph query workshop.omni --query queries.gq --name like_this \
    --params '{"text": "who turns on a lathe", "since": "2020-01-01"}'

say "A branch copies nothing; what is loaded or changed there stays there."
run omnigraph branch create --uri workshop.omni review/newcomers
run omnigraph --as ada load workshop.omni --data newcomers.jsonl --mode merge --branch review/newcomers
run omnigraph --as ada mutate workshop.omni --query queries.gq --name lend \
    --params '{"who": "ada", "code": "sa-1"}' --branch review/newcomers
run omnigraph query workshop.omni --query queries.gq --name busiest_sheds --branch review/newcomers
run omnigraph snapshot workshop.omni --branch review/newcomers
run omnigraph snapshot workshop.omni
run omnigraph commit list workshop.omni --branch review/newcomers

say "An export loads back into an equal graph."
run omnigraph export workshop.omni --type Maker

say "The same in Python: the graph then and now, a typed plan, a migration plan."
run python library.py

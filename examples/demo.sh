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

say "A graph is created from the schema and filled with one atomic load, which computes missing vectors."
export OMNIGRAPH_EMBEDDINGS_MOCK=1 # instead of a provider, so that the demo needs no key
run omnigraph init --schema schema.pg workshop.omni
run omnigraph load workshop.omni --data seed.jsonl --mode append -m "the workshop as we found it"

say "The same records as Spark tasks, on a Java that came with the package: the same graph."
run omnigraph init --schema schema.pg twin.omni
run omnigraph load twin.omni --data seed.jsonl --mode append --engine spark
cmp <(omnigraph export workshop.omni | grep '"type"') <(omnigraph export twin.omni | grep '"type"')

say "Bad records are all reported, and nothing of the load is visible."
run_failing omnigraph load workshop.omni --data damaged.jsonl --mode append

say "Queries follow edges, negate, count and order."
run omnigraph query workshop.omni --query queries.gq --name taught_by --params '{"who": "ada"}'
run omnigraph query workshop.omni --query queries.gq --name busiest_sheds

say "One query filters and ranks, by meaning and by words."
run omnigraph query workshop.omni --query queries.gq --name like_this \
    --params '{"text": "who turns on a lathe", "since": "2020-01-01"}'

say "A branch copies nothing; what is loaded or changed there stays there."
run omnigraph branch create --uri workshop.omni review/newcomers
run omnigraph --as ada load workshop.omni --data newcomers.jsonl --mode merge --branch review/newcomers
run omnigraph --as ada mutate workshop.omni --query queries.gq --name lend \
    --params '{"who": "ada", "code": "sa-1"}' --branch review/newcomers
run omnigraph query workshop.omni --query queries.gq --name busiest_sheds --branch review/newcomers
run omnigraph snapshot workshop.omni --branch review/newcomers

say "A diff shows what the branch would bring."
run omnigraph diff main review/newcomers --uri workshop.omni

say "Meanwhile main goes on: files of other programs are loaded as a mapping says."
run cat stock.yaml
run omnigraph load workshop.omni --mapping stock.yaml --mode append -m "the new tools"

say "A merge brings the branch to main as one commit."
run omnigraph merge review/newcomers --uri workshop.omni -m "welcome"
run omnigraph log workshop.omni --graph

say "Nothing is lost: every commit can be read as it was."
first=$(omnigraph commit list workshop.omni | sed -n 2p | cut -d' ' -f1)
run omnigraph query workshop.omni --query queries.gq --name busiest_sheds
run omnigraph query workshop.omni --query queries.gq --name busiest_sheds --snapshot "$first"

say "An export loads back into an equal graph, as JSON lines or from Parquet files."
run omnigraph export workshop.omni --type Tool
run omnigraph export workshop.omni --format parquet --out backup

say "The same in Python: the graph now and then, a branch from an earlier commit, a migration plan."
run cat library.py
run python library.py

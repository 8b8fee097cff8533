#!/usr/bin/env bash
# A tour of the product on a newspaper archive. Every command is shown before it runs; nothing leaves this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
root=$PWD
work=$(mktemp -d)
server=
stop_server() {
    if [[ -n "$server" ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
}
finish() {
    stop_server
    rm -rf "$work"
}
trap finish EXIT
cp examples/archive/* "$work"
cd "$work"
export OMNIGRAPH_HOME="$work/.omnigraph" # whatever this machine is configured for stays out of the tour
unset OMNIGRAPH_PROFILE

bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'
[[ -t 1 && -z "${NO_COLOR:-}" ]] || bold='' dim='' plain=''

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; }
run() { show "$@" && "$@"; }
run_failing() {
    show "$@"
    if "$@"; then
        echo "this command was expected to fail" >&2
        exit 1
    fi
}
SECONDS=0
graph=graphs/archive.omni

say "1  A cluster is a directory: schemas, queries and policies are files, checked together."
run cat schema.pg
run cat cluster.yaml
run omnigraph cluster validate
run omnigraph cluster apply --as emma

say "2  Load 112,400 records with text and vectors, as Spark tasks: one commit, or none."
python generate.py
run ls -sh archive.jsonl
run omnigraph load $graph --data archive.jsonl --mode append --engine spark --as emma -m "the archive"

say "3  One query filters, searches words and vectors, and ranks both together. First on the command line …"
run sed -n '/query search/,/^}/p' queries.gq
run omnigraph query $graph --query queries.gq --name search --params-file question.json
say "   … and the same from Python."
run cat search.py
run python search.py $graph

say "4  Queries follow edges."
run omnigraph query $graph --query queries.gq --name read_by_peers --params '{"who": "author-7"}'

say "5  A branch copies nothing. Work on it, and see what it would bring."
run omnigraph branch create --uri $graph review
run omnigraph mutate $graph --query queries.gq --name publish --branch review --as rita --params \
    '{"slug": "scoop", "title": "A new comet", "body": "a comet near the lighthouse", "who": "author-7", "on": "2024-06-01"}'
run omnigraph mutate $graph --query queries.gq --name retitle --branch review --as rita \
    --params '{"slug": "article-41", "title": "What the review calls it"}'
run omnigraph diff main review --uri $graph

say "6  Meanwhile an editor changes the same title on main: the merge reports the conflict, and nothing is written."
run omnigraph mutate $graph --query queries.gq --name retitle --as emma \
    --params '{"slug": "article-41", "title": "What main calls it"}'
run_failing omnigraph merge review --uri $graph
say "   Decide, and merge as one commit."
run omnigraph merge review --uri $graph --strategy theirs --as emma -m "the review wins"
run omnigraph log $graph --graph

say "7  Every commit can be read as it was."
first=$(omnigraph commit list $graph | sed -n 2p | cut -d' ' -f1)
run omnigraph query $graph --query queries.gq --name article --params '{"slug": "article-41"}'
run omnigraph query $graph --query queries.gq --name article --params '{"slug": "article-41"}' --snapshot "$first"
run cat history.py
run python history.py $graph
run omnigraph branch delete --uri $graph review

say "8  An agent works through MCP: its tools are the graph's, and it writes to a branch of its own."
run cat agent.py
run python agent.py $graph
proposal=$(omnigraph branch list $graph | grep -o 'agent/[^ ]*')
run omnigraph merge "$proposal" --uri $graph --delete-branch --as emma -m "the agent's title"

say "9  Serve the cluster. The policy decides who may do what, in the engine."
run cat newsroom.yaml
export OMNIGRAPH_SERVER_BEARER_TOKENS_JSON='{"rita": "rita-token", "emma": "emma-token"}'
show "omnigraph-server --cluster . &"
omnigraph-server --cluster . --bind 127.0.0.1:0 --log-level warning >address 2>server.log &
server=$!
for _ in {1..300}; do
    [[ -s address ]] && break
    kill -0 "$server" 2>/dev/null || { cat server.log >&2; exit 1; }
    sleep 0.1
done
url=http://$(cut -d= -f2 address)
python - "$url" <<'WAIT'
import sys, time, urllib.request
for _ in range(300):
    try:
        urllib.request.urlopen(sys.argv[1] + "/readyz").read()
        break
    except OSError:
        time.sleep(0.1)
WAIT
export OMNIGRAPH_BEARER_TOKEN=rita-token
run omnigraph query sections --server "$url" --graph archive
run_failing omnigraph mutate retitle --server "$url" --graph archive \
    --params '{"slug": "article-41", "title": "Mine"}'
OMNIGRAPH_BEARER_TOKEN=emma-token run omnigraph mutate retitle --server "$url" --graph archive \
    --params '{"slug": "article-41", "title": "What the editor calls it"}'
run cat remote.py
run python remote.py "$url"

say "10  Deploy a new schema to the running server: checked first, migrated, served. No other graph would notice."
sed -i.before 's/    city: String?/    city: String?\n    pen_name: String?/' schema.pg
export OMNIGRAPH_BEARER_TOKEN=emma-token
run omnigraph cluster plan --server "$url"
run omnigraph cluster apply --server "$url"

stop_server
kept=build/demo/archive.omni
rm -rf "${root:?}/$kept"
mkdir -p "$root/build/demo"
cp -R $graph "$root/$kept"

printf '\n%sThat was the tour: %d seconds.%s docs/user/quickstart.md starts from here.\n' "$bold" "$SECONDS" "$plain"
printf 'The graph is kept. Look at it, its history and a merge in a browser:\n\n    .venv/bin/omnigraph explore %s\n' "$kept"

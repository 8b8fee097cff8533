#!/bin/sh
# Starts the server: with the arguments of the container if there are any, otherwise as the environment says.
set -eu

refuse() {
    echo "$1" >&2
    exit 64 # EX_USAGE of sysexits.h: the container is configured wrongly, and a restart does not help.
}

case "${1:-}" in
'') ;;
omnigraph | omnigraph-server) exec "$@" ;;
*) exec omnigraph-server "$@" ;;
esac

cluster=${OMNIGRAPH_CLUSTER:-} uri=${OMNIGRAPH_TARGET_URI:-}
config=${OMNIGRAPH_CONFIG:-} target=${OMNIGRAPH_TARGET:-}

if [ -n "$cluster" ]; then
    [ -z "$uri$config$target" ] || refuse "OMNIGRAPH_CLUSTER is exclusive; unset OMNIGRAPH_TARGET_URI, OMNIGRAPH_CONFIG and OMNIGRAPH_TARGET"
    set -- --cluster "$cluster"
elif [ -n "$uri" ]; then
    [ -z "$target" ] || refuse "OMNIGRAPH_TARGET_URI and OMNIGRAPH_TARGET are exclusive; unset one of them"
    set -- "$uri" ${config:+--config "$config"}
elif [ -n "$config" ]; then
    set -- --config "$config" ${target:+--target "$target"}
else
    refuse "nothing to serve. Set one of these variables:
  OMNIGRAPH_CLUSTER      directory or storage root of a cluster
  OMNIGRAPH_TARGET_URI   path or s3:// address of a graph; OMNIGRAPH_CONFIG may name a project file
  OMNIGRAPH_CONFIG       project file; OMNIGRAPH_TARGET serves one of its graphs
or pass arguments for omnigraph-server, or a command: omnigraph ..."
fi
exec omnigraph-server "$@" --bind "${OMNIGRAPH_BIND:-0.0.0.0:8080}"

#!/usr/bin/env bash
# Package dependencies from the command line. Run it in this folder; it makes packages.omni.
set -eu
omnigraph init --schema schema.pg packages.omni
omnigraph load --data data.jsonl --mode merge -m "the index of today"
ask() { omnigraph query --query queries.gq --name "$@"; }

ask needs -p name=shop
ask breaks -p name=escape
ask between -p from=shop -p to=sockets
ask needed_by_many
ask unmaintained

# What if http-core went away? Try it on a branch.
omnigraph branch create what-if
omnigraph mutate --branch what-if -m "without http-core" \
    -e 'query gone($name: String) { delete Package where name = $name }' -p name=http-core
ask needs -p name=shop --branch what-if
omnigraph diff main what-if

# Somebody removes a maintainer; a week later the check fails. Which commit was it?
omnigraph mutate -e 'query leave() { delete Maintainer where handle = "cleo" }' -m "cleo left" --as ada
omnigraph mutate -e 'query join() { insert Maintainer { handle: "fay" } }' -m "fay joined" --as bo
omnigraph bisect --query queries.gq --name orphaned

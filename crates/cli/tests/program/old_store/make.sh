#!/usr/bin/env bash
# Makes a store as the Gleaner named by $GLEANER writes it: make.sh FOLDER. It was run once per schema that is kept here.
set -u
mkdir -p -m 700 "$1"
home=$(realpath "$1")
cd "$(dirname "$0")"
run() {
    local kind=$1
    shift
    echo "-- $kind $*"
    "$GLEANER" run --home "$home" --manifest manifest.json --name "$kind" --json --interact none "$@" \
        -- python3 connector.py "$kind" | tail -n 1
}
run chat --stream conversations
run chat
run claims
run since --since 2026-01-21
run since
run resource --resource notes=n07
run resource
run gaps --stream notes
run gaps
run mixed --stream notes
run mixed
run mixed --catch-up
id=$("$GLEANER" gaps --home "$home" mixed --json | sed -n 's/.*"gap_id":"\([0-9a-f]*\)".*"record_key":"ignored".*/\1/p')
"$GLEANER" gaps ignore --home "$home" "$id" --note "the owner does without it"

#!/bin/sh
# The same with curl: a toy provider, a sidecar before it, sixty requests, and what the sidecar learned.
# GLEANER names the program if it is not in the PATH.
set -eu
cd "$(dirname "$0")"

provider_port=${PROVIDER_PORT:-8718}
sidecar_port=${SIDECAR_PORT:-8717}
home=$(mktemp -d)
python3 client.py --provider "$provider_port" &
provider=$!
"${GLEANER:-gleaner}" proxy --upstream "http://127.0.0.1:$provider_port" \
    --listen "127.0.0.1:$sidecar_port" --home "$home" &
sidecar=$!
trap 'kill "$sidecar" "$provider" 2>/dev/null; wait 2>/dev/null; rm -rf "$home"' EXIT
trap 'exit 1' HUP INT PIPE TERM

base=http://127.0.0.1:$sidecar_port
# Asks until the sidecar listens; a real setup would start it as a service.
curl --silent --fail --retry 20 --retry-delay 1 --retry-connrefused --output /dev/null "$base/.gleaner/status"

# The only change to a script: the base URL. [1-60] is curl's own counting.
curl --silent --no-progress-meter --fail --parallel --parallel-max 8 --output /dev/null --write-out '%{http_code}\n' \
    "$base/items/[1-60]" | sort | uniq -c

# Rather an answer at once than a wait:
curl --silent --include --header 'Gleaner-Max-Wait: 0' "$base/items/61"
echo
echo "what was learned:"
curl --silent "$base/.gleaner/status"

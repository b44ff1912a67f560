#!/usr/bin/env bash
# Writes the transcript in README.md from a real run of the quickstart, between its markers.
#
#   scripts/transcript.sh
#
# Paths of this machine are replaced: the fleet home by ~/.ours-fleet-quickstart, the checkout by
# ~/ours-fleet. Everything else is printed as it came.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd -P)
work=$(mktemp -d /tmp/oftr.XXXXXX)
home=$work/h
finish() {
    status=$?
    trap - EXIT
    bash scripts/quickstart.sh --down --home "$home" >/dev/null 2>&1 || true
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT

bash scripts/quickstart.sh --home "$home" > "$work/quickstart" || { cat "$work/quickstart" >&2; exit 1; }
clean() { sed -e "s|$home|~/.ours-fleet-quickstart|g" -e "s|$root|~/ours-fleet|g" -e 's/[ \t]*$//'; }
show() { # SHOWN-COMMAND COMMAND…
    printf '$ %s\n' "$1"
    shift
    "$@" 2>&1 || true
}
# The text is typed and answered in its own time: wait until the answer is on the screen.
answered() {
    local _
    for _ in $(seq 1 50); do
        if "$home/fleet" peek writer | grep -q "$1"; then return 0; fi
        sleep 0.2
    done
    echo "transcript: no answer of writer" >&2
    return 1
}
{
    echo '```console'
    show 'ours-fleet status' "$home/fleet" status
    echo
    show "ours-fleet send writer 'the sandbox held'" "$home/fleet" send writer 'the sandbox held'
    answered 'written, 1 lines'
    show 'ours-fleet peek writer' "$home/fleet" peek writer
    echo
    show 'ours-fleet peek scout' "$home/fleet" peek scout
    echo
    show 'ours-fleet status scout' "$home/fleet" status scout
    echo
    show 'ours-fleet down' "$home/fleet" down
    echo '```'
} | clean > "$work/block"
awk -v file="$work/block" '
    $0 == "<!-- transcript:begin -->" { print; while ((getline line < file) > 0) print line; on = 1; next }
    $0 == "<!-- transcript:end -->" { on = 0 }
    !on' README.md > "$work/readme"
cat "$work/readme" > README.md
echo 'transcript: written into README.md'

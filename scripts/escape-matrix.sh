#!/usr/bin/env bash
# Tries to get out of every sandbox in every network mode, as this user and, for root, as a plain user
# too, and compares what happened with docs/escape-matrix.md.
#
#   scripts/escape-matrix.sh           prints what differs; exit code 1 if something does
#   scripts/escape-matrix.sh --write   writes the matrix
#
# A plain user must be able to reach the target directory (CARGO_TARGET_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'escape-matrix: %s\n' "$*" >&2; exit 1; }
write=no
case "${1:-}" in
    '') ;;
    --write) write=yes ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) printf 'escape-matrix: unknown argument: %s (try --help)\n' "$1" >&2; exit 64 ;;
esac
[ "$(uname -s)" = Linux ] || fail 'Linux only'
[ "$write" = no ] || [ "$(id -u)" -eq 0 ] || fail 'only root can measure for both users'

scratch=$(mktemp -d /var/tmp/ofe.XXXXXX)
user=''
finish() {
    if [ -n "$user" ]; then userdel "$user" >/dev/null 2>&1 || true; fi
    rm -rf -- "$scratch"
}
trap finish EXIT
# The tests write the file with names of their own in it.
chmod 0777 "$scratch"

binary=$(cargo test -p fleet-sandbox --all-features --locked --test main --no-run --message-format json \
    | sed -n 's/.*"executable":"\([^"]*\/main-[^"]*\)".*/\1/p' | tail -n 1)
[ -x "$binary" ] || fail 'the tests were not built'
places=${CARGO_TARGET_DIR:-target}/tmp
mkdir -p "$places"
measure() { # [COMMAND...]: the test, through a command that changes the user
    local variable=()
    [ "$write" = no ] || variable=(OURS_FLEET_ESCAPES="$scratch")
    (cd fleet-sandbox && "$@" env PATH=/usr/local/bin:/usr/bin:/bin ${variable[@]+"${variable[@]}"} \
        "$binary" --exact escape::matrix::nothing_gets_out_of_any_backend_in_any_mode)
}
status=0
measure || status=1
if [ "$(id -u)" -eq 0 ]; then
    user=ofe-$$
    useradd --no-create-home --home-dir "$scratch/none" --shell /bin/sh "$user"
    if [ -e "$scratch/escape-matrix.md" ]; then chown "$user:" "$scratch/escape-matrix.md"; fi
    mode=$(stat -c %a "$places")
    chmod 1777 "$places"
    measure setpriv --reuid "$user" --regid "$user" --init-groups --reset-env || status=1
    chmod "$mode" "$places"
fi
if [ "$write" = yes ]; then
    [ -s "$scratch/escape-matrix.md" ] || fail 'nothing was measured'
    cat "$scratch/escape-matrix.md" > docs/escape-matrix.md
    printf 'written: docs/escape-matrix.md\n'
fi
exit "$status"

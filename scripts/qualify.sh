#!/usr/bin/env bash
# Measures an agent program and prints what differs from what is checked in.
#
#   scripts/qualify.sh                           both, at the versions of .config/harnesses.toml
#   scripts/qualify.sh --newest                  both, at what the registry calls the latest
#   scripts/qualify.sh claude|codex [--newest | VERSION]
#   scripts/qualify.sh --write ...               also writes the rows into docs/unattended-matrix.md
#
# Runs the end-to-end tests on the real program, started by ours-fleet: the unattended matrix of
# docs/unattended-matrix.md (as a plain user; as root one is made for it), and everything else that
# needs a real agent. A version that is pinned already is not measured by --newest.
#
# Exit code 0: nothing differs. 1: something does, or could not be measured. 69: no such version can
# be had here. To qualify a version: measure it, look at every difference, write the tables below
# fleet-core/src/harness/, this table and the pin.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root"
fail() { printf 'qualify: %s\n' "$*" >&2; exit 1; }
usage() { printf 'qualify: %s (try --help)\n' "$*" >&2; exit 64; }

names='claude codex' version='' newest=no write=no
for argument in "$@"; do
    case $argument in
        -h | --help) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 0 ;;
        --newest) newest=yes ;;
        --write) write=yes ;;
        claude | codex) names=$argument ;;
        [0-9]*.[0-9]*.[0-9]*) version=$argument ;;
        *) usage "unknown argument: $argument" ;;
    esac
done
[ -z "$version" ] || [ "$names" != 'claude codex' ] || usage 'a version of which program?'
[ -z "$version" ] || [ "$newest" = no ] || usage 'a version, or the newest?'

# On disk and not below /tmp, which a sandbox replaces; short, for the sake of sockets.
scratch=$(mktemp -d /var/tmp/ofq.XXXXXX)
user=''
finish() {
    if [ -n "$user" ]; then userdel "$user" >/dev/null 2>&1 || true; fi
    rm -rf -- "$scratch"
}
trap finish EXIT
chmod 0755 "$scratch"

pin() { awk -v name="[$1]" '/^\[/ { on = $0 == name } on && /^version/ { gsub(/[^0-9A-Za-z.+-]/, "", $3); print $3 }' .config/harnesses.toml; }
status=0
if [ -n "$version" ]; then
    awk -v name="[$names]" -v version="$version" \
        '/^\[/ { on = $0 == name } on && /^version/ { $0 = "version = \"" version "\"" } { print }' \
        .config/harnesses.toml > "$scratch/pins"
    OURS_FLEET_HARNESS_PINS=$scratch/pins bash scripts/harnesses.sh > "$scratch/programs" || status=$?
elif [ "$newest" = yes ]; then
    bash scripts/harnesses.sh --newest > "$scratch/programs" || status=$?
else
    bash scripts/harnesses.sh > "$scratch/programs" || status=$?
fi
[ "$status" -eq 0 ] || exit "$status"
programs=() measured=''
for name in $names; do
    # The newest comes after the pinned one.
    read -r _ found program < <(awk -v name="$name" '$1 == name' "$scratch/programs" | tail -n 1)
    if [ "$newest" = yes ] && [ "$found" = "$(pin "$name")" ]; then
        printf '%s %s: the newest is the pinned one\n' "$name" "$found"
        continue
    fi
    printf '%s %s: measuring (pinned is %s)\n' "$name" "$found" "$(pin "$name")"
    programs+=("OURS_FLEET_TEST_$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')=$program")
    measured="$measured $name"
done
[ -n "$measured" ] || exit 0

# Tests of the program that is not measured are left out where rstest names it.
filter='test(/^e2e::/)'
case $measured in
    ' claude') filter="$filter and not test(/Agent__Codex/)" ;;
    ' codex') filter="$filter and not test(/Agent__Claude/)" ;;
esac
cargo nextest archive -p fleet-cli --all-features --locked --archive-file "$scratch/tests.tar.zst" >&2
nextest=$(command -v cargo-nextest || printf '%s' "${CARGO_HOME:-$HOME/.cargo}/bin/cargo-nextest")
mkdir "$scratch/src"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
done | tar -c --null -T - -f - | tar -x -C "$scratch/src" -f -
run() { # WHO FILTER [COMMAND...]: the tests, through a command that changes the user
    local who=$1 filter=$2
    shift 2
    mkdir "$scratch/$who"
    cp "$nextest" "$scratch/$who/cargo-nextest"
    [ -z "$user" ] || chown -R "$user:" "$scratch/$who"
    (cd "$scratch/src" && "$@" env PATH="/usr/local/bin:/usr/bin:/bin" LANG=C.UTF-8 REQUIRE_ALL=1 \
        OURS_FLEET_MEASURE="$scratch/rows" "${programs[@]}" \
        "$scratch/$who/cargo-nextest" nextest run --profile ci --archive-file "$scratch/tests.tar.zst" \
        --extract-to "$scratch/$who" --workspace-remap "$scratch/src" -E "$filter" >&2)
}
: > "$scratch/rows"
chmod 0666 "$scratch/rows"
tests=0
if [ "$(id -u)" -eq 0 ]; then
    run root "$filter and not test(/as_user/)" || tests=1
    user=ofq-$$
    useradd --no-create-home --home-dir "$scratch/user" --shell /bin/sh "$user"
    chown -R "$user:" "$scratch/src"
    run user "$filter and test(/as_user/)" \
        setpriv --reuid "$user" --regid "$user" --init-groups --reset-env || tests=1
else
    run user "$filter and not test(/as_root/)" || tests=1
fi

table=docs/unattended-matrix.md
wanted=$(printf '%s' "$measured" | sed 's/claude/claude-code/; s/^ //; s/ /|/g')
# Order: program, approval and filesystem from narrow to wide, isolation off before on.
ordered() {
    awk -F ' *[|] *' '{
        print $2, index("ask auto allow", $3), index("read-only workspace unrestricted", $4), $5 "\t" $0
    }' | LC_ALL=C sort -k 1,1 -k 2,2n -k 3,3n -k 4,4 | cut -f 2-
}
grep -E "^\\| ($wanted) \\|" "$table" | ordered > "$scratch/before" || true
ordered < "$scratch/rows" > "$scratch/after"
differs=0
diff -U 0 "$scratch/before" "$scratch/after" | grep -E '^[-+]\|' > "$scratch/differences" || true
if [ -s "$scratch/differences" ]; then
    differs=1
    printf 'rows that differ (- checked in, + measured):\n'
    cat "$scratch/differences"
else
    printf 'the matrix is as checked in (%s rows)\n' "$(wc -l < "$scratch/after")"
fi
[ "$tests" -eq 0 ] || printf 'tests failed, see above\n'
if [ "$write" = yes ]; then
    { grep -E '^\| (claude-code|codex) \|' "$table" | grep -vE "^\\| ($wanted) \\|" || true; cat "$scratch/after"; } \
        | ordered > "$scratch/rows-of-all"
    awk -v rows="$scratch/rows-of-all" '
        /^\| (claude-code|codex) \|/ { next }
        { print }
        /^\| program \|/ { head = 1; next }
        head && /^\| --- / { while ((getline line < rows) > 0) print line; head = 0 }
    ' "$table" > "$scratch/table"
    cat "$scratch/table" > "$table"
    printf 'written: %s\n' "$table"
fi
[ "$tests" -eq 0 ] && [ "$differs" -eq 0 ]

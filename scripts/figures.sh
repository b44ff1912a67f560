#!/usr/bin/env bash
# Measures the figures in README.md and writes them between its markers; never edit them by hand.
#
#   scripts/figures.sh           measure a release build and write the block (about five minutes)
#   scripts/figures.sh --check   check the form of the block, its sums, and that its commit is known
#
# Targets come from .config/targets.toml. A missed one stays in the table, marked.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
readme=${FIGURES_README:-README.md}
targets=.config/targets.toml
begin='<!-- figures:begin -->'
end='<!-- figures:end -->'

fail() { printf 'figures: %s\n' "$*" >&2; exit 1; }
# id TAB what TAB unit TAB at_most, one line a target
target_list() {
    awk '
        function flush() { if (id != "") print id "\t" what "\t" unit "\t" most }
        /^\[/ { flush(); id = $0; gsub(/[][]/, "", id); what = unit = most = ""; next }
        /^[a-z_]+ *=/ {
            key = $1; value = $0; sub(/^[a-z_]+ *= */, "", value); gsub(/^"|"$/, "", value)
            if (key == "what") what = value; else if (key == "unit") unit = value; else if (key == "at_most") most = value
        }
        END { flush() }' "$targets"
}
block_of() { awk -v b="$begin" -v e="$end" '$0 == b { on = 1; next } $0 == e { on = 0 } on' "$1"; }
# A sum over all lines but its own: a slip of the hand shows.
sum_of() { grep -v '^<!-- figures:sum ' | cksum | awk '{ print $1 "-" $2 }'; }

check() {
    [ "$(grep -cxF -e "$begin" "$readme")" = 1 ] && [ "$(grep -cxF -e "$end" "$readme")" = 1 ] \
        || fail "$readme must have one line '$begin' and one line '$end'"
    local block stated commit
    block=$(block_of "$readme")
    stated=$(printf '%s\n' "$block" | sed -n 's/^<!-- figures:sum \([0-9-]*\) -->$/\1/p')
    [ -n "$stated" ] || fail "the block was not written by scripts/figures.sh: run it"
    [ "$stated" = "$(printf '%s\n' "$block" | sum_of)" ] || fail 'the block was edited by hand: run scripts/figures.sh'
    printf '%s\n' "$block" | awk -F '|' -v list="$(target_list)" '
        BEGIN { count = split(list, rows, "\n") }
        /^\| [^-]/ && !/^\| What / {
            row++
            split(rows[row], want, "\t")
            for (i = 2; i <= 8; i++) { gsub(/^ +| +$/, "", $i) }
            if (row > count || $2 != want[2]) { print "figures: row " row " is \"" $2 "\", expected \"" want[2] "\"" > "/dev/stderr"; bad = 1; next }
            if ($3 !~ /^[0-9.-]+$/ || $5 !~ /^[0-9]+$/ || $6 != want[3]) { print "figures: row " row " is malformed" > "/dev/stderr"; bad = 1 }
            verdict = (want[4] == "") ? "" : (($3 + 0 <= want[4] + 0) ? "met" : "**missed**")
            if ($8 != verdict) { print "figures: row " row " says \"" $8 "\", its numbers say \"" verdict "\"" > "/dev/stderr"; bad = 1 }
        }
        END { if (row != count) { print "figures: " row + 0 " rows, " count " targets" > "/dev/stderr"; bad = 1 } exit bad }
    ' || exit 1
    commit=$(printf '%s\n' "$block" | sed -n 's/^Commit `\([0-9a-f]\{40\}\)`.*/\1/p')
    [ -n "$commit" ] || fail 'the block names no commit'
    if [ "$(git rev-parse --is-shallow-repository)" = false ]; then
        git merge-base --is-ancestor "$commit" HEAD || fail "commit $commit is no ancestor of this one: measure again"
    fi
    printf 'figures: the block is whole, measured at %.12s\n' "$commit"
}

case "${1:-}" in
    --check) check; exit 0 ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    '') ;;
    *) printf 'figures: unknown argument: %s\n' "$1" >&2; exit 64 ;;
esac

[ "$(uname -s)" = Linux ] || fail 'measures on Linux only'
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail 'the work tree has changes: the figures must belong to a commit'
command -v bwrap >/dev/null && command -v tmux >/dev/null || fail 'needs bubblewrap and tmux'
commit=$(git rev-parse HEAD)
work=$(mktemp -d /tmp/ofg.XXXXXX)
results=$work/results
: > "$results"
bin=${CARGO_TARGET_DIR:-$PWD/target}/release
fleet=$bin/ours-fleet
measure=$bin/examples/measure
export OURS_FLEET_SUPERVISOR=none
unset TMUX TMUX_PANE
finish() {
    status=$?
    trap - EXIT
    for home in "$work"/*/home; do
        [ -d "$home/.ours-fleet" ] && OURS_FLEET_HOME=$home "$fleet" down >/dev/null 2>&1 || true
    done
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT

# Takes one line of measure's output under an id of targets.toml.
take() { # ID NAME LINES
    printf '%s\n' "$3" | awk -F '\t' -v id="$1" -v name="$2" '$1 == name { print id "\t" $2 "\t" $3 "\t" $4 "\t" $5; found = 1 } END { exit !found }' >> "$results" \
        || fail "no result for $1"
}
progress() { printf 'figures: %s\n' "$*" >&2; }

progress 'building'
cargo build --release --locked -p fleet-cli
cargo build --release --locked -p fleet-benches --examples

progress 'start'
out=$("$measure" run 50 -- "$fleet" --version)
take version-wall wall "$out"
take version-rss rss "$out"

for roles in 10 100 1000; do
    progress "config, $roles roles"
    mkdir "$work/c$roles"
    "$measure" generate "$work/c$roles" "$roles" 20
    times=20
    out=$(OURS_FLEET_HOME=$work/c$roles/home "$measure" run "$times" -- "$fleet" config)
    take "config-$roles-wall" wall "$out"
    [ "$roles" = 10 ] || take "config-$roles-rss" rss "$out"
done

progress 'benchmarks'
cargo bench --locked -p fleet-benches --bench load --bench resolve --bench translate --bench check --bench argv -- --noplot >&2
for pair in load/10 load/100 load/1000 resolve/5 resolve/25 resolve/205 translate/claude-code translate/codex \
    check-roles/judge_10x20 check-roles/judge_100x20 check-roles/judge_1000x20 argv/205; do
    take "$(printf '%s' "$pair" | tr /_ --)" time "$("$measure" criterion "${CARGO_TARGET_DIR:-target}/criterion/$pair/new")"
done

progress 'sandbox'
for binds in 5 25 205; do
    mkdir "$work/s$binds"
    out=$("$measure" sandbox 50 "$fleet" "$work/s$binds" "$binds")
    if [ "$binds" = 25 ]; then
        take sandbox-raw raw "$out"
        take sandbox-over-raw over "$out"
    fi
    take "sandbox-of-raw-$binds" of-raw "$out"
    take "sandbox-of-plain-$binds" of-plain "$out"
done

progress 'a served network'
mkdir "$work/r"
out=$("$measure" relay 20 "$fleet" "$work/r")
take relay-bulk bulk-of-direct "$out"
take relay-rate rate "$out"
take relay-request request-over "$out"
take relay-connection connection-over "$out"

for roles in 1 5 20; do
    progress "up, $roles roles"
    mkdir "$work/u$roles"
    "$measure" generate "$work/u$roles" "$roles" 0
    out=$(OURS_FLEET_HOME=$work/u$roles/home "$measure" run 5 --after "'$fleet' down" -- "$fleet" up)
    take "up-$roles" wall "$out"
done

progress 'an idle runner, one minute'
export OURS_FLEET_HOME=$work/u1/home
"$fleet" up >/dev/null
pid=$(tr -d ' \n' < "$OURS_FLEET_HOME/.ours-fleet/control/r0/supervisor-run.json" | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
[ -n "$pid" ] || fail 'no pid in the run marker'
sleep 5
out=$("$measure" idle "$pid" 60)
take runner-pss pss "$out"
take runner-threads threads "$out"
take runner-cpu cpu "$out"
"$fleet" down >/dev/null

progress 'status, 100 roles up'
mkdir "$work/t100"
"$measure" generate "$work/t100" 100 0
export OURS_FLEET_HOME=$work/t100/home
"$fleet" up >/dev/null
out=$("$measure" run 20 -- "$fleet" status --json)
take status-100 wall "$out"
"$fleet" down >/dev/null

number() { awk -v n="$1" 'BEGIN { if (n >= 100 || n == int(n)) printf "%.0f", n; else if (n >= 10) printf "%.1f", n; else printf "%.2f", n }'; }
{
    echo '| What | Median | Min–max | n | Unit | Target | |'
    echo '|---|--:|--:|--:|---|--:|---|'
    target_list | while IFS="$(printf '\t')" read -r id what unit most; do
        line=$(awk -F '\t' -v id="$id" '$1 == id' "$results")
        [ -n "$line" ] || { echo "figures: nothing measured for $id" >&2; exit 1; }
        IFS=$(printf '\t') read -r _ median low high count <<< "$line"
        verdict='' target=''
        median=$(number "$median")
        if [ -n "$most" ]; then
            target="≤ $most"
            verdict=$(awk -v m="$median" -v t="$most" 'BEGIN { print (m <= t) ? "met" : "**missed**" }')
        fi
        printf '| %s | %s | %s–%s | %s | %s | %s | %s |\n' \
            "$what" "$median" "$(number "$low")" "$(number "$high")" "$count" "$unit" "$target" "$verdict"
    done
    echo
    printf 'Commit `%s`, release build, %s. %s cores (%s), %s GiB, Linux %s, %s, %s, %s.\n' "$commit" "$(rustc --version | cut -d ' ' -f 1,2)" \
        "$(nproc)" "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1 | tr -s ' ')" \
        "$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" "$(uname -r | cut -d . -f 1,2)" \
        "$(. /etc/os-release && printf '%s' "${PRETTY_NAME:-}")" "$(bwrap --version)" "$(tmux -V)"
} > "$work/block"
printf '<!-- figures:sum %s -->\n' "$(sum_of < "$work/block")" >> "$work/block"
awk -v b="$begin" -v e="$end" -v file="$work/block" '
    $0 == b { print; while ((getline line < file) > 0) print line; on = 1; next }
    $0 == e { on = 0 }
    !on' "$readme" > "$work/readme"
cat "$work/readme" > "$readme"
check

#!/usr/bin/env bash
# Changes the code that decides what an agent may touch, one place at a time: some test must fail.
#
#   scripts/mutants.sh           try every change, write the figures into docs/mutants.md
#   scripts/mutants.sh --resume  the same, but keep what is known of a file that is as it was
#   scripts/mutants.sh FILE…     only changes in these files; writes nothing
#   scripts/mutants.sh --check   check the form of the figures, and their sums
#
# Takes about an hour of two idle cores. A change that no test notices is an error unless docs/mutants.md
# explains it. Which files and why not all changes: .cargo/mutants.toml. Works in a copy below target/.
# Needs cargo-mutants (cargo install cargo-mutants --locked).
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
root=$PWD
page=${MUTANTS_PAGE:-$root/docs/mutants.md}
out=${MUTANTS_OUT:-$root/target/mutants}
begin='<!-- mutants:begin -->'
end='<!-- mutants:end -->'
# Cases must notice by themselves. What only a property finds, by luck of its generator, is missed.
tests=(isolation permissions case::claude case::closure case::codex case::denied_reads case::select case::shared
    case::weakness golden:: --skip broken:: --skip property::)

fail() { printf 'mutants: %s\n' "$*" >&2; exit 1; }
# Changes that the page explains: the code in the first cell of a row. `FILE: CHANGE`, without the line
# and column, outlives an edit above it.
explained() { sed -n 's/^| `\([^`]*\)` |.*/\1/p' "$page"; }
check() {
    [ "$(grep -cxF -e "$begin" "$page")" = 1 ] && [ "$(grep -cxF -e "$end" "$page")" = 1 ] \
        || fail "$page must have one line '$begin' and one line '$end'"
    awk -F '|' -v b="$begin" -v e="$end" -v rows="$(explained | grep -c . || true)" '
        $0 == b { on = 1 }
        $0 == e { on = 0 }
        on && /^\| [0-9]/ { found++; if ($2 != $3 + $4 + $5) wrong = "do not add up"; if ($5 > rows) wrong = "hold more missed changes than are explained" }
        END {
            if (found != 1) wrong = "are missing: run scripts/mutants.sh"
            if (wrong != "") { print "mutants: the figures " wrong > "/dev/stderr"; exit 1 }
        }' "$page"
}
results_of() { printf '%s/results/%s/mutants.out' "$out" "$(printf '%s' "$1" | tr / -)"; }
# What the result of a file depends on; of tests only that more of them can not notice less.
stamp_of() { cat "$1" .cargo/mutants.toml | git hash-object --stdin; }
survivors() { cat "$1/missed.txt" "$1/timeout.txt" | sed 's/^\([^:]*\):[0-9]*:[0-9]*: /\1: /'; }
unexplained() { survivors "$1" | grep -vxFf <(explained; printf '(none)\n') || true; }
is_known() {
    [ -e "$1/stamp" ] && [ "$(cat "$1/stamp")" = "$2" ] && [ -z "$(unexplained "$1")" ]
}
total() { local kind=$1; shift; cat "${@/%//$kind.txt}" | grep -c . || true; }

resume=0 files=()
for argument in "$@"; do
    case "$argument" in
        -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
        --check) check; printf 'mutants: the figures are whole\n'; exit 0 ;;
        --resume) resume=1 ;;
        -*) fail "unknown option $argument" ;;
        *) files+=("$argument") ;;
    esac
done
cargo mutants --version > /dev/null 2>&1 || fail 'cargo-mutants is missing: cargo install cargo-mutants --locked'
[ -e "$page" ] || fail "$page is missing"
whole=0
if [ "${#files[@]}" -eq 0 ]; then
    whole=1
    mapfile -t files < <(cargo mutants --list 2>/dev/null | cut -d : -f 1 | sort -u)
    [ "${#files[@]}" -gt 0 ] || fail 'no file to change'
fi

# Times of files are kept, so that only what differs from the last run is compiled; those that were
# changed meanwhile look as new as they are.
rm -rf -- "$out/tree"
mkdir -p "$out/tree"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
done | tar -c --null -T - -f - | tar -x -C "$out/tree" -f -
find "$out/tree/fleet-core/src" -name '*.rs' -exec touch {} +
# No debug information and no backtraces: nobody reads them, and they take half of the time.
export CARGO_TARGET_DIR="$out/target" INSTA_UPDATE=no RUST_BACKTRACE=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0

baseline=run results=()
for file in "${files[@]}"; do
    result=$(results_of "$file") stamp=$(stamp_of "$file")
    results+=("$result")
    if [ "$resume" = 1 ] && is_known "$result" "$stamp"; then continue; fi
    rm -rf -- "${result%/mutants.out}"
    mkdir -p "${result%/mutants.out}"
    targets=(--cargo-arg=--test=main)
    if grep -q '^mod tests' "$file"; then targets+=(--cargo-arg=--lib); fi
    printf '== %s\n' "$file"
    # Naming a file on the command line would add to the settings.
    sed "s#^examine_globs = .*#examine_globs = [\"$file\"]#" .cargo/mutants.toml > "$out/mutants.toml"
    status=0
    nice -n 10 cargo mutants --dir "$out/tree" --in-place --config "$out/mutants.toml" --output "${result%/mutants.out}" \
        --baseline "$baseline" --timeout 60 --build-timeout 600 --colors never --no-times --level error \
        "${targets[@]}" -- -- "${tests[@]}" || status=$?
    # 2: something was missed, 3: something ran into the time limit; both are judged below.
    case "$status" in 0 | 2 | 3) ;; *) fail "cargo mutants ended with $status" ;; esac
    printf '%s\n' "$stamp" > "$result/stamp"
    baseline=skip
done

left=$(for result in "${results[@]}"; do unexplained "$result"; done)
[ -z "$left" ] || { printf '%s\n' "$left" >&2; fail "no test noticed these, and $page does not explain them"; }
caught=$(total caught "${results[@]}") unviable=$(total unviable "${results[@]}")
missed=$(($(total missed "${results[@]}") + $(total timeout "${results[@]}")))
all=$((caught + unviable + missed))
printf 'mutants: %d changes: %d noticed, %d did not compile, %d explained\n' "$all" "$caught" "$unviable" "$missed"
[ "$whole" = 1 ] || exit 0
{
    printf '%s\n' "$begin"
    printf 'Code of commit `%s`, %s.\n\n' "$(git rev-parse HEAD)" "$(cargo mutants --version)"
    printf '| Changes | Noticed by a test | Did not compile | Not noticed, explained below |\n|---:|---:|---:|---:|\n'
    printf '| %d | %d | %d | %d |\n' "$all" "$caught" "$unviable" "$missed"
    printf '%s\n' "$end"
} > "$out/block"
awk -v b="$begin" -v e="$end" -v block="$out/block" '
    $0 == b { while ((getline line < block) > 0) print line; on = 1 }
    !on { print }
    $0 == e { on = 0 }' "$page" > "$out/page"
cat "$out/page" > "$page"
check

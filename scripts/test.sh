#!/usr/bin/env bash
# Runs everything that is checked about ours-fleet: formatting, lints, all tests, documentation,
# examples, the shape of the workspace, and that nothing is left behind.
#
#   scripts/test.sh
#
# Installs what it needs first: Debian packages through apt (as root, or through sudo where that
# asks no password), cargo-nextest from the crate registry, and the agent programs that some tests
# run for real (scripts/harnesses.sh). A Rust toolchain must be there.
#
# REQUIRE_ALL=1 makes each skipped test a failure; CI sets it.
set -euo pipefail
case "${1:-}" in
    '') ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: takes no arguments (scripts/stress.sh runs single tests many times)" >&2; exit 64 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root"
export REQUIRE_ALL="${REQUIRE_ALL:-0}" INSTA_UPDATE="${INSTA_UPDATE:-no}"
unset OURS_FLEET_HOME OURS_FLEET_SUPERVISOR TMUX TMUX_PANE
nextest_version=0.9.143
umask 022
# As root the tests also run as a plain user, who must be able to reach what was built.
reachable() {
    local directory=$1
    while [ "$directory" != / ]; do
        if [ -d "$directory" ] && [ -z "$(find "$directory" -maxdepth 0 -perm -001)" ]; then return 1; fi
        directory=$(dirname "$directory")
    done
}
if [ "$(id -u)" -eq 0 ] && ! reachable "${CARGO_TARGET_DIR:-$root/target}"; then
    export CARGO_TARGET_DIR="/var/tmp/ours-fleet-target-$(printf '%s' "$root" | cksum | cut -d ' ' -f 1)"
    printf 'building in %s: a plain user can not reach %s\n' "$CARGO_TARGET_DIR" "$root"
fi
target_dir=${CARGO_TARGET_DIR:-$root/target}

number=0
step='(start)'
started=$SECONDS
heading() {
    number=$((number + 1))
    step=$1
    printf '\n== %d. %s (after %d s)\n' "$number" "$step" $((SECONDS - started))
}
say() { printf '%s\n' "$*"; }
stop() { printf 'test.sh: %s\n' "$*" >&2; exit 1; }

scratch=''
test_user=''
finish() {
    status=$?
    trap - EXIT
    if [ -n "$test_user" ]; then userdel -r "$test_user" >/dev/null 2>&1 || true; fi
    if [ -n "$scratch" ]; then rm -rf -- "$scratch"; fi
    if [ "$status" -ne 0 ]; then
        printf '\ntest.sh: FAILED in step %d: %s\n' "$number" "$step" >&2
    fi
    exit "$status"
}
trap finish EXIT

heading 'what is needed'
# command=Debian package that brings it
needed='tmux=tmux bwrap=bubblewrap pgrep=procps setpriv=util-linux git=git cc=gcc useradd=passwd tar=tar socat=socat podman=podman runc=runc newuidmap=uidmap catatonit=catatonit unshare=util-linux systemctl=systemd node=nodejs python3=python3'
missing=''
if [ "$(uname -s)" = Linux ]; then
    for pair in $needed; do
        command -v "${pair%%=*}" >/dev/null 2>&1 || [ -x "/usr/sbin/${pair%%=*}" ] || missing="$missing ${pair#*=}"
    done
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
    # What a sandbox shows of them is the system's own.
    [ -x /usr/bin/python3 ] || missing="$missing python3"
    [ -x /usr/bin/node ] || missing="$missing nodejs"
    if [ -n "$missing" ]; then
        case " $missing " in *' gcc '*) missing="$missing libc6-dev" ;; esac
        if [ "$(id -u)" -eq 0 ]; then as_root=''
        elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root='sudo -n'
        else stop "missing packages and no right to install them; as root: apt-get install$missing"
        fi
        command -v apt-get >/dev/null 2>&1 || stop "missing, and there is no apt-get here:$missing"
        say "installing:$missing"
        # shellcheck disable=SC2086
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
        # shellcheck disable=SC2086
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
    fi
    PATH=$PATH:/usr/sbin:/sbin
fi
command -v cargo >/dev/null 2>&1 || stop 'cargo was not found: install a Rust toolchain (https://rustup.rs)'
cargo fmt --version >/dev/null 2>&1 || stop 'rustfmt is missing: rustup component add rustfmt'
cargo clippy --version >/dev/null 2>&1 || stop 'clippy is missing: rustup component add clippy'
if ! cargo nextest --version >/dev/null 2>&1; then
    say "installing: cargo-nextest $nextest_version (built from the crate registry, a few minutes)"
    cargo install cargo-nextest --locked --version "$nextest_version"
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
fi
for program in 'cargo --version' 'cargo nextest --version' 'tmux -V' 'bwrap --version' 'podman --version'; do
    say "$($program 2>/dev/null | head -n 1 || true)"
done
say "user $(id -un) ($(id -u)), REQUIRE_ALL=$REQUIRE_ALL"

# Everything the tests start works below this directory or from this checkout's target directory,
# which is how a process left behind is told from a stranger's. Short, for the sake of sockets.
scratch=$(mktemp -d /tmp/oft.XXXXXX)
chmod 0755 "$scratch"
mkdir -m 0700 "$scratch/t"
export TMPDIR="$scratch/t"
cgroup_before=$(cat /proc/1/cgroup 2>/dev/null || true)
# Pids that are ours: program, working directory or command line below the target directory or the
# scratch directory. A zombie counts as gone.
ours() {
    local pid exe cwd line
    for pid in $(ls /proc 2>/dev/null | grep -E '^[0-9]+$' || true); do
        [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ] || continue
        grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null && continue
        exe=$(readlink "/proc/$pid/exe" 2>/dev/null || true)
        cwd=$(readlink "/proc/$pid/cwd" 2>/dev/null || true)
        line=$({ tr '\0' ' ' < "/proc/$pid/cmdline"; } 2>/dev/null || true)
        case "$exe" in "$target_dir"/* | "$scratch"/*) printf '%s %s\n' "$pid" "$line"; continue ;; esac
        case "$cwd/" in "$target_dir"/* | "$scratch"/*) printf '%s %s\n' "$pid" "$line"; continue ;; esac
        case "$line" in *"$target_dir/tmp/"* | *"$scratch/"*) printf '%s %s\n' "$pid" "$line" ;; esac
    done
}
already=$(ours 2>/dev/null | awk '{ print $1 }' | tr '\n' ' ')

heading 'scripts'
for script in .ci/run scripts/* examples/quickstart/agents/*; do
    [ -f "$script" ] || continue
    case "$(head -n 1 "$script")" in
        *bash*) bash -n "$script" ;;
        '#!/bin/sh') sh -n "$script" ;;
        *python3) python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$script" ;;
        *) stop "$script has no known first line" ;;
    esac
done
sh scripts/selftest

heading 'formatting'
cargo fmt --all --check

heading 'lints'
cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

heading 'agent programs that tests run for real'
harness_variables=()
status=0
bash scripts/harnesses.sh > "$scratch/harnesses" || status=$?
if [ "$status" -eq 0 ]; then
    while read -r name version program; do
        say "$name $version"
        if [ "$(id -u)" -eq 0 ] && ! reachable "$(dirname "$program")"; then
            stop "a plain user can not reach $program: choose another OURS_FLEET_HARNESS_CACHE"
        fi
        variable=OURS_FLEET_TEST_$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')
        export "$variable=$program"
        # The run as a plain user starts from an empty environment.
        harness_variables+=("$variable=$program")
    done < "$scratch/harnesses"
elif [ "$status" -eq 69 ] && [ "$REQUIRE_ALL" != 1 ]; then
    say 'skipped: the agent programs can not be had here, see above'
else
    stop 'the agent programs could not be installed'
fi

heading 'tests'
# Names say what a test needs: as_root the rights of root, as_user the lack of them. These modules need a
# systemd user manager, which only a step of its own gives them.
managed='field::systemd|integration::scope'
if [ "$(id -u)" -eq 0 ]; then
    who="not test(/as_user|$managed/)" section=main
else
    who="not test(/as_root|$managed/)" section=plain
fi
say "filter: $who"
cargo nextest run --workspace --all-features --locked --profile ci -E "$who"
mkdir -p "$target_dir/nextest/kept"
cp "$target_dir/nextest/ci/junit.xml" "$target_dir/nextest/kept/main.xml"
reports=("$target_dir/nextest/kept/main.xml")

heading 'tests of the sandbox and the command line as a plain user'
if [ "$(id -u)" -ne 0 ]; then
    say 'info: the whole run is a plain user'"'"'s already; tests that need root (as_root) are not part of it'
elif [ "$(uname -s)" != Linux ]; then
    say 'info: Linux only'
else
    test_user=oft-$$
    useradd --create-home --home-dir "$scratch/home" --shell /bin/sh "$test_user"
    mkdir "$scratch/bin" "$scratch/src"
    mkdir -m 0700 "$scratch/u"
    cp "$(command -v cargo-nextest || printf '%s' "${CARGO_HOME:-$HOME/.cargo}/bin/cargo-nextest")" "$scratch/bin/"
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
    done | tar -c --null -T - -f - | tar -x -C "$scratch/src" -f -
    cargo nextest archive --workspace --all-features --locked --archive-file "$scratch/tests.tar.zst"
    chown -R "$test_user:" "$scratch/src" "$scratch/u" "$scratch/tests.tar.zst"
    mkdir "$scratch/x"
    chown "$test_user:" "$scratch/x"
    # Some tests keep their directories out of /tmp, which a sandbox replaces: cargo names this one.
    mkdir -p "$target_dir/tmp"
    chmod 1777 "$target_dir/tmp"
    (
        cd "$scratch/src"
        setpriv --reuid "$test_user" --regid "$test_user" --init-groups --reset-env \
            env PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="$scratch/u" REQUIRE_ALL="$REQUIRE_ALL" \
            INSTA_UPDATE=no INSTA_WORKSPACE_ROOT="$scratch/src" LANG=C.UTF-8 \
            ${harness_variables[@]+"${harness_variables[@]}"} \
            "$scratch/bin/cargo-nextest" nextest run --profile ci \
            --archive-file "$scratch/tests.tar.zst" --extract-to "$scratch/x" \
            --workspace-remap "$scratch/src" \
            -E "(package(fleet-sandbox) or package(fleet-cli) or test(/as_user/)) and not test(/as_root|$managed/)"
    )
    chmod 0755 "$target_dir/tmp"
    user_report=$(find "$scratch/x" "$scratch/src" -path '*nextest/ci/junit.xml' | head -n 1)
    [ -n "$user_report" ] || stop 'the run as a plain user left no report'
    cp "$user_report" "$target_dir/nextest/kept/user.xml"
    reports+=("$target_dir/nextest/kept/user.xml")
fi

heading 'beside a systemd user manager'
if [ -z "$test_user" ]; then
    say "info: only root can start one beside this machine; the tests of $managed are not run"
else
    programs=$(cargo nextest list --workspace --all-features --locked --list-type binaries-only \
        --message-format json 2>/dev/null | python3 -c '
import json, sys
built = json.load(sys.stdin)["rust-binaries"]
for crate, module in [("fleet-cli", "field::systemd"), ("fleet-sandbox", "integration::scope")]:
    print(module, built[crate + "::main"]["binary-path"])')
    chmod 1777 "$target_dir/tmp"
    # Each: what the manager's user can't run, and who that is.
    for part in 'as_user root' "as_root user $test_user"; do
        read -r others manager <<< "$part"
        while read -r module program; do
            status=0
            (
                cd /
                # shellcheck disable=SC2086 # One or two words.
                REQUIRE_ALL=1 TMPDIR=/tmp "$root/scripts/with-user-manager.sh" $manager \
                    "$program" "$module" --skip "$others" < /dev/null
            ) || status=$?
            if [ "$status" -eq 69 ] && [ "$REQUIRE_ALL" != 1 ]; then
                say 'skipped: no user manager can be started beside this machine, see above'
            elif [ "$status" -ne 0 ]; then
                stop "the tests beside a user manager failed (exit code $status)"
            fi
        done <<< "$programs"
    done
    chmod 0755 "$target_dir/tmp"
fi

heading 'the newest agent programs (what differs is printed, and fails nothing)'
if [ "${#harness_variables[@]}" -eq 0 ]; then
    say 'skipped: the agent programs can not be had here'
else
    status=0
    scripts/qualify.sh --newest || status=$?
    [ "$status" -eq 0 ] || say "info: the newest versions differ, or could not be measured (exit code $status)"
fi

heading 'how many tests were executed'
scripts/count-tests --junit "${reports[0]}" --section "$section" | tee "$scratch/counts"
if [ "${#reports[@]}" -gt 1 ]; then
    say 'as a plain user:'
    scripts/count-tests --junit "${reports[1]}" --section user | tee -a "$scratch/counts"
fi

heading 'the map of faults'
fault_arguments=()
[ "$section" = main ] || fault_arguments+=(--except as_root)
for report in "${reports[@]}"; do fault_arguments+=(--junit "$report"); done
scripts/check-faults "${fault_arguments[@]}"

heading 'the numbered cases'
case_arguments=()
for report in "${reports[@]}"; do case_arguments+=(--junit "$report"); done
scripts/check-cases "${case_arguments[@]}"

heading 'documentation tests'
cargo test --doc --workspace --all-features --locked

heading 'documentation'
RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --workspace --all-features --locked

heading 'crates with default features off'
cargo check -p fleet-core --no-default-features --locked
cargo check -p fleet-cli --no-default-features --locked

heading 'shape of the workspace'
scripts/check-purity

heading 'figures in the documentation'
bash scripts/figures.sh --check
python3 scripts/mutants.py --check

heading 'licences, sources, unused dependencies'
if command -v cargo-deny >/dev/null 2>&1; then
    cargo deny --offline check bans licenses sources
else
    say 'info: cargo-deny is not installed, not run'
fi
if command -v cargo-machete >/dev/null 2>&1; then
    cargo machete
else
    say 'info: cargo-machete is not installed, not run'
fi

heading 'benchmarks are compiled'
cargo bench --no-run --locked -p fleet-benches
cargo build --release --locked -p fleet-benches --examples

heading 'nothing is left behind'
left=''
for _ in $(seq 1 50); do
    left=$(ours | awk -v before=" $already " 'index(before, " " $1 " ") == 0')
    [ -n "$left" ] || break
    sleep 0.2
done
if [ -n "$left" ]; then
    printf '%s\n' "$left" >&2
    stop 'these processes were left behind'
fi
[ "$cgroup_before" = "$(cat /proc/1/cgroup 2>/dev/null || true)" ] || stop '/proc/1/cgroup has changed'
say 'no process, and the first process is in the cgroup it was in'

total=$(awk '$1 == "all" { sum += $2 } END { print sum + 0 }' "$scratch/counts")
step=done
printf '\nall steps done in %d s\n' $((SECONDS - started))
printf '%d passed, 0 failed\n' "$total"

#!/usr/bin/env bash
# Builds ours-fleet and brings up three small agents that need no model and no account.
#
#   scripts/quickstart.sh [--home DIR]          install, build, bring up, show
#   scripts/quickstart.sh --down [--home DIR]   take everything away again
#
# All it makes lies in a fleet home of its own (~/.ours-fleet-quickstart unless --home says
# otherwise) and in the build directory of this checkout. A second run finds the agents running and
# changes nothing.
set -euo pipefail

say() { printf '%s\n' "$*"; }
title() { printf '\n== %s\n' "$*"; }
fail() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

root=$(cd "$(dirname "$0")/.." && pwd -P)
home=''
down=no
while [ $# -gt 0 ]; do
    case $1 in
        --home) [ $# -ge 2 ] || { echo 'quickstart: --home needs a directory' >&2; exit 64; }; home=$2; shift 2 ;;
        --down) down=yes; shift ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) printf 'quickstart: unknown argument: %s (try --help)\n' "$1" >&2; exit 64 ;;
    esac
done
home=${home:-${HOME:?is not set: use --home DIR}/.ours-fleet-quickstart}
case $home in /*) ;; *) home=$PWD/$home ;; esac
home=${home%/}
[ -n "$home" ] || fail 'the fleet home can not be /'
# The same path whether or not the directory exists yet, links on the way resolved.
mkdir -p "$(dirname "$home")"
home=$(cd "$(dirname "$home")" && pwd -P)/$(basename "$home")
marker=$home/.quickstart
fleet=$home/fleet
roles='writer reviewer scout'
system=$(uname -s)
case $system in
    Linux) file=$root/examples/quickstart/fleet.yaml ;;
    Darwin) file=$root/examples/quickstart/fleet.macos.yaml ;;
    *) fail "runs on Linux and macOS, this is $system" ;;
esac
binary=${CARGO_TARGET_DIR:-$root/target}/release/ours-fleet
case $binary in /*) ;; *) binary=$root/$binary ;; esac

# The state word of a role.
state_of() {
    "$fleet" status "$1" --json 2>/dev/null | tr -d ' \n\t' | grep -o '"state":"[a-z-]*"' | head -n 1 | cut -d '"' -f 4 || true
}
all_running() {
    local role
    [ -x "$fleet" ] || return 1
    for role in $roles; do [ "$(state_of "$role")" = running ] || return 1; done
}
# Pids of everything that works for this fleet home.
processes() {
    local pid
    if [ -d /proc/self ]; then
        for pid in $(ls /proc | grep -E '^[0-9]+$'); do
            [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ] || continue
            grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null && continue
            if tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep -qF -e "OURS_FLEET_HOME=$home" -e "=$home/.ours-fleet/" \
                || tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null | grep -qF -e "$home/.ours-fleet/"; then
                echo "$pid"
            fi
        done 2>/dev/null
    else
        pgrep -f -- "$home/.ours-fleet/" || true
    fi
}
how_to() {
    cat <<T

What to do now (\`$fleet\` is ours-fleet for this fleet home):

  look at its console (Ctrl-b d leaves it running)
      $fleet attach writer
  send it a line, see the answer
      $fleet send writer 'a first note'
      $fleet peek writer
  what everybody does; all the rest
      $fleet status
      $fleet --help
  take everything away
      $root/scripts/quickstart.sh --down$([ "$home" = "${HOME:-}/.ours-fleet-quickstart" ] || printf ' --home %s' "$home")
T
}

if [ "$down" = yes ]; then
    if [ ! -e "$home" ]; then
        say "quickstart: nothing to take down: $home does not exist"
        exit 0
    fi
    [ -f "$marker" ] || fail "$home was not made by this script: nothing was touched"
    if [ -x "$fleet" ]; then
        title 'taking the agents down'
        "$fleet" down || fail "\`down\` failed: see above; nothing was removed"
    fi
    left=''
    for _ in $(seq 1 50); do
        left=$(processes)
        [ -n "$left" ] || break
        sleep 0.2
    done
    if [ -n "$left" ]; then
        # shellcheck disable=SC2086
        ps -o pid=,args= -p "$(printf '%s\n' $left | paste -s -d , -)" >&2 || true
        fail 'these processes are still there; nothing was removed'
    fi
    rm -rf -- "$home"
    say "no process is left; removed $home"
    exit 0
fi

if [ -e "$home" ] && [ ! -f "$marker" ] && [ -n "$(ls -A "$home" 2>/dev/null)" ]; then
    fail "$home exists and was not made by this script: choose another with --home DIR"
fi
if all_running; then
    say 'quickstart: all three agents are already up: nothing to do'
    "$fleet" status
    how_to
    exit 0
fi

title 'what is needed'
packages=''
command -v tmux >/dev/null 2>&1 || packages="$packages tmux"
if [ "$system" = Linux ]; then
    command -v bwrap >/dev/null 2>&1 || packages="$packages bubblewrap"
    command -v cc >/dev/null 2>&1 || packages="$packages gcc libc6-dev"
fi
if [ -z "$packages" ]; then
    say 'tmux, bubblewrap and a linker are there: nothing to install'
elif [ "$system" = Darwin ]; then
    command -v brew >/dev/null 2>&1 || fail "missing:$packages; install Homebrew, or the packages by hand"
    say "installing with Homebrew:$packages"
    # shellcheck disable=SC2086
    brew install $packages
else
    command -v apt-get >/dev/null 2>&1 || fail "missing:$packages; there is no apt-get here, install them by hand"
    if [ "$(id -u)" -eq 0 ]; then as_root=''
    elif command -v sudo >/dev/null 2>&1; then as_root=sudo
    else fail "missing:$packages; as root: apt-get install$packages"
    fi
    say "installing with apt:$packages"
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
fi
command -v cargo >/dev/null 2>&1 || fail 'cargo was not found: install a Rust toolchain (https://rustup.rs)'
if [ "$(id -u)" -eq 0 ]; then
    say 'note: you are root. The agents are confined all the same, but on your own machine use an ordinary account.'
fi
if [ "$system" = Darwin ]; then
    say 'WARNING: this build has no sandbox for macOS: the agents run with all your rights.'
fi

title 'building the release binary (about two minutes the first time)'
(cd "$root" && cargo build --release --locked -p fleet-cli)
[ -x "$binary" ] || fail "the build left no program at $binary"

quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
mkdir -p "$home"
chmod 0700 "$home"
: > "$marker"
mkdir -p "$home/.ssh"
chmod 0700 "$home/.ssh"
if [ ! -f "$home/.ssh/canary" ]; then
    (umask 077 && printf 'canary %s\n' "$(od -An -N 12 -tx1 /dev/urandom | tr -d ' \n')" > "$home/.ssh/canary")
fi
{
    say '#!/bin/sh'
    say '# ours-fleet for the quickstart: its own fleet home, its own fleet file, its agents on the PATH.'
    say "OURS_FLEET_HOME=$(quoted "$home")"
    say 'OURS_FLEET_SUPERVISOR=none'
    say "PATH=$(quoted "$root/examples/quickstart/agents"):\$PATH"
    say 'export OURS_FLEET_HOME OURS_FLEET_SUPERVISOR PATH'
    say "exec $(quoted "$binary") -c $(quoted "$file") \"\$@\""
} > "$fleet.new"
chmod 0755 "$fleet.new"
mv "$fleet.new" "$fleet"

title "ours-fleet up -c ${file#"$root/"}"
"$fleet" up || fail '`up` failed: see above'
for role in $roles; do
    state=''
    for _ in $(seq 1 100); do
        state=$(state_of "$role")
        [ "$state" != running ] || break
        sleep 0.2
    done
    if [ "$state" != running ]; then
        "$fleet" status "$role" >&2 || true
        fail "$role is not ready: its state is '${state:-not known}'; try: $fleet logs $role"
    fi
done

title 'the fleet'
"$fleet" status

for role in $roles; do
    title "ours-fleet status $role"
    "$fleet" status "$role"
done

title 'does the sandbox hold?'
state_dir=$home/.ours-fleet/agents/scout
# The same probe, the same files, without the sandbox: it must read them, or it proves nothing. It
# runs first, so that the files are known to be there when scout tries.
outside=$(OURS_FLEET_STATE=$state_dir "$root/examples/quickstart/agents/quickstart-scout" --probe)
word=$(od -An -N 4 -tx1 /dev/urandom | tr -d ' \n')
say "ours-fleet send scout 'probe $word'"
"$fleet" send scout "probe $word" || fail 'the text did not reach scout'
for _ in $(seq 1 50); do
    if [ "$(head -n 1 "$state_dir/probe.txt" 2>/dev/null)" = "probe $word" ]; then break; fi
    sleep 0.2
done
[ "$(head -n 1 "$state_dir/probe.txt" 2>/dev/null)" = "probe $word" ] || fail 'scout did not answer within 10 s'
say 'ours-fleet peek scout'
"$fleet" peek scout
say 'the same probe outside the sandbox:'
say "$outside" | sed 's/^/  /'
for name in key sibling control; do
    say "$outside" | grep -q "^$name: READ " || fail "the probe '$name' can't read outside the sandbox either: it proves nothing"
    if [ "$system" = Darwin ]; then continue; fi
    grep -q "^$name: refused: " "$state_dir/probe.txt" || fail "scout could read '$name': the sandbox does NOT hold"
done
for role in writer reviewer scout; do
    [ -s "$home/.ours-fleet/agents/$role/WORKLOG.md" ] || fail "$role has written nothing into its worklog"
done
if [ "$system" = Darwin ]; then
    say 'there is no sandbox on macOS in this build: nothing is proved'
else
    say 'each file is there, scout was refused each: the sandbox holds'
fi
how_to

#!/usr/bin/env bash
# Installs the agent programs that the tests run for real, at the versions of .config/harnesses.toml.
#
#   scripts/harnesses.sh            prints NAME VERSION PATH, a line a program
#   scripts/harnesses.sh --newest   then the same for what the registry calls the latest
#
# From npm, each version into a directory of its own, once; no script of a package runs. The cache is
# OURS_FLEET_HARNESS_CACHE, else /var/cache/ours-fleet-harnesses as root (a plain user can read it),
# else ~/.cache/ours-fleet-harnesses.
#
# Exit code 69: the registry can not be reached, or there is no npm and no way to get it.
set -euo pipefail
export LC_ALL=C
umask 022

say() { printf '%s\n' "$*" >&2; }
fail() { printf 'harnesses: %s\n' "$*" >&2; exit 1; }
unavailable() { printf 'harnesses: %s\n' "$*" >&2; exit 69; }

newest=no
case "${1:-}" in
    '') ;;
    --newest) newest=yes ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) printf 'harnesses: unknown argument: %s (try --help)\n' "$1" >&2; exit 64 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd -P)
pins=${OURS_FLEET_HARNESS_PINS:-$root/.config/harnesses.toml}

if [ -n "${OURS_FLEET_HARNESS_CACHE:-}" ]; then cache=$OURS_FLEET_HARNESS_CACHE
elif [ "$(id -u)" -eq 0 ]; then cache=/var/cache/ours-fleet-harnesses
else cache=${XDG_CACHE_HOME:-${HOME:?is not set}/.cache}/ours-fleet-harnesses
fi
case $cache in /*) ;; *) fail "the cache must be an absolute path: $cache" ;; esac

case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) unavailable "there are no programs for $(uname -s)" ;;
esac
case $(uname -m) in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) unavailable "there are no programs for $(uname -m)" ;;
esac
platform=$system-$machine

work=''
trap 'if [ -n "$work" ]; then rm -rf -- "$work"; fi' EXIT

# name TAB version TAB package, a line a program
pinned() {
    awk '
        function flush() { if (name != "") print name "\t" version "\t" package }
        /^\[/ { flush(); name = $0; gsub(/[][]/, "", name); version = package = ""; next }
        /^(version|package) *= *"[^"]*"$/ {
            key = $1; value = $0; sub(/^[^"]*"/, "", value); sub(/"$/, "", value)
            if (key == "version") version = value; else package = value
        }
        END { flush() }' "$pins"
}

need_npm() {
    command -v npm >/dev/null 2>&1 && return
    local as_root
    if [ "$(id -u)" -eq 0 ]; then as_root=''
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root='sudo -n'
    else unavailable 'npm is missing; as root: apt-get install npm'
    fi
    command -v apt-get >/dev/null 2>&1 || unavailable 'npm is missing, and there is no apt-get here'
    say 'installing with apt: npm'
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 \
        || unavailable 'npm is missing, and apt-get can not reach its packages'
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm >&2 \
        || unavailable 'npm is missing, and apt-get could not install it'
}

# The package with the native program: both vendors publish one for each platform.
native_package() { # NAME VERSION PACKAGE
    case $1 in
        claude) printf '%s-%s@%s\n' "$3" "$platform" "$2" ;;
        codex) printf '%s@%s-%s\n' "$3" "$2" "$platform" ;;
        *) fail "$pins: no way is known to install '$1'" ;;
    esac
}

# The native program below a directory.
native_program() { # NAME DIRECTORY
    case $1 in
        claude) find "$2/node_modules" -path "*/claude-code-$platform/claude" -type f ;;
        codex) find "$2/node_modules" -path '*/vendor/*/bin/codex' -type f ;;
    esac
}

# Asks a program for its version, in an empty home.
check_version() { # PROGRAM VERSION
    local home said
    home=$(mktemp -d)
    said=$(HOME=$home CODEX_HOME=$home CLAUDE_CONFIG_DIR=$home DISABLE_AUTOUPDATER=1 \
        "$1" --version </dev/null 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+[^ ]*' | head -n 1) || true
    rm -rf -- "$home"
    [ "$said" = "$2" ] || fail "$1 says it is '$said', not '$2'"
}

# Installs one program unless it is there; prints its line.
install() { # NAME VERSION PACKAGE
    local name=$1 version=$2 package program target
    printf '%s\n' "$version" | grep -qE '^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$' \
        || fail "$name: '$version' is no exact version"
    target=$cache/$name-$version
    if [ ! -x "$target/bin/$name" ]; then
        need_npm
        package=$(native_package "$name" "$version" "$3")
        mkdir -p "$cache"
        work=$(mktemp -d "$cache/.new-XXXXXX")
        say "installing with npm: $package"
        # Not the package that brings it by itself: its engines field makes an old npm choose another
        # version without a word.
        (cd "$work" && npm install --prefix "$work" --ignore-scripts --no-audit --no-fund --no-save \
            --no-update-notifier --loglevel=error --cache "$work/.npm" "$package" >&2) \
            || unavailable "npm could not install $package"
        rm -rf -- "$work/.npm"
        program=$(native_program "$name" "$work")
        [ "$(printf '%s\n' "$program" | grep -c .)" = 1 ] || fail "$package brings no program, or several"
        chmod 0755 "$program"
        check_version "$program" "$version"
        mkdir "$work/bin"
        ln -s "../${program#"$work/"}" "$work/bin/$name"
        chmod -R u+rwX,go+rX,go-w "$work"
        # Where another run was faster, its directory stays.
        if ! mv -T "$work" "$target" 2>/dev/null && [ ! -x "$target/bin/$name" ]; then
            rm -rf -- "$target"
            mv "$work" "$target"
        fi
        rm -rf -- "$work"
        work=''
    fi
    # The file itself: a program looks for its helpers beside it.
    program=$(cd "$target/bin" && cd "$(dirname "$(readlink "$name")")" && pwd -P)/$name
    check_version "$program" "$version"
    printf '%s %s %s\n' "$name" "$version" "$program"
}

list=$(pinned)
[ -n "$list" ] || fail "$pins names no program"
while IFS=$'\t' read -r name version package; do
    [ -n "$version" ] && [ -n "$package" ] || fail "$pins: [$name] needs version and package"
    install "$name" "$version" "$package"
done <<< "$list"
[ "$newest" = yes ] || exit 0
need_npm
while IFS=$'\t' read -r name version package; do
    latest=$(npm view --loglevel=error --no-update-notifier "$package" version) \
        || unavailable "npm could not ask for the newest version of $package"
    install "$name" "$latest" "$package"
done <<< "$list"

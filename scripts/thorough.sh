#!/usr/bin/env bash
# The long run of the properties: 100000 cases in memory, 1000 on real files, where CI tries 1000 and
# 100. Built with optimisation, in a profile of its own, so it takes minutes and not hours. Without
# arguments a running role of each backend is then killed 200 times (FLEET_KILLS) at random moments, by root in
# the run of a plain user too; FLEET_KILL_SEED=N repeats a run.
#
#   scripts/thorough.sh [nextest arguments, for example -p fleet-core]
#
# FLEET_PROPTEST_SEED=N draws other cases than the usual ones; the number is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
export FLEET_PROPTEST=thorough INSTA_UPDATE=no
printf 'seed: %s\n' "${FLEET_PROPTEST_SEED:-the usual one}"
all=no
[ "$#" -gt 0 ] || { all=yes; set -- --workspace; }
nice -n 19 cargo nextest run --cargo-profile thorough --profile thorough --all-features --locked \
    -E 'test(/^(property|broken)::/)' "$@"
[ "$all" = yes ] || exit 0
export FLEET_KILLS=${FLEET_KILLS:-200}
binary=$(cargo test --profile thorough -p fleet-sandbox --all-features --locked --test main --no-run \
    --message-format json | sed -n 's/.*"executable":"\([^"]*\/main-[^"]*\)".*/\1/p' | tail -n 1)
[ -x "$binary" ] || { printf 'thorough: the tests were not built\n' >&2; exit 1; }
# One after another: they would only make each other slow.
kill_all() { # [COMMAND...]: through a command that changes the user
    (cd fleet-sandbox && nice -n 19 "$@" "$binary" --test-threads 1 --nocapture escape::kills::)
}
if [ "$(id -u)" -ne 0 ]; then
    kill_all
    exit 0
fi
kill_all
# Landlock takes no root, and a container of a plain user is another one than root's.
places=${CARGO_TARGET_DIR:-$PWD/target}/tmp user=ofk-$$
mkdir -p "$places"
mode=$(stat -c %a "$places")
trap 'userdel --remove "$user" >/dev/null 2>&1 || true; chmod "$mode" "$places"' EXIT
useradd --create-home --shell /bin/sh "$user"
chmod 1777 "$places"
kill_all setpriv --reuid "$user" --regid "$user" --init-groups --reset-env \
    env PATH=/usr/local/bin:/usr/bin:/bin FLEET_KILLS="$FLEET_KILLS" \
    ${FLEET_KILL_SEED:+FLEET_KILL_SEED="$FLEET_KILL_SEED"}

#!/usr/bin/env bash
# The long run of the properties: 100000 cases in memory, 1000 on real files, where CI tries 1000 and
# 100. Built with optimisation, in a profile of its own, so it takes minutes and not hours. Without
# arguments a running role is then killed 200 times (FLEET_KILLS) at random moments; FLEET_KILL_SEED=N repeats a run.
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
FLEET_KILLS=${FLEET_KILLS:-200} nice -n 19 cargo nextest run --cargo-profile thorough --profile thorough \
    --all-features --locked -p fleet-sandbox -E 'test(/^escape::kills::/)'

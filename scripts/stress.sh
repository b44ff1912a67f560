#!/usr/bin/env bash
# Runs tests that start processes 50 times. One red run of 50 is a race: find it, don't repeat it.
#
#   scripts/stress.sh [FILTER]
#
# FILTER is a nextest filter expression or the start of a test name; without one every test of the
# tiers integration, escape, shim, fault, field and e2e runs. STRESS_COUNT changes the number.
set -euo pipefail
cd "$(dirname "$0")/.."

filter='kind(test) and test(/^(integration|escape|shim|fault|field|e2e)::/)'
case "${1:-}" in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    '') ;;
    *\(*) filter=$1 ;;
    *) filter="test($1)" ;;
esac
if [ "$(id -u)" -eq 0 ]; then who='not test(/as_user/)'; else who='not test(/as_root/)'; fi

exec cargo nextest run --workspace --all-features --locked \
    --stress-count "${STRESS_COUNT:-50}" --failure-output final -E "($filter) and $who"

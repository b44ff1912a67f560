#!/usr/bin/env bash
# Runs a command beside a systemd user manager of its own, which knows nothing of this machine.
#
#   scripts/with-user-manager.sh user NAME COMMAND…   of a plain user: scopes start, no limit holds
#   scripts/with-user-manager.sh root COMMAND…        of root: memory and pids hold
#
# Only root can run it. A user manager takes the tree of control groups that it sees for its own, and
# moves every process in its root. So it sees a part of the tree that this script makes and removes,
# from own mount, pid and cgroup namespaces, with a private /run, and nothing is started unless that
# holds. Needs control groups of version 1 beside version 2, as on the machines of the tests.
# Exit code: that of the command; 69 if it cannot be done here; 70 if something was left or changed.
set -euo pipefail

trees=/sys/fs/cgroup
cannot() { printf 'with-user-manager.sh: %s\n' "$*" >&2; exit 69; }
broken() { printf 'with-user-manager.sh: %s\n' "$*" >&2; exit 70; }
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 64; }

# Inside: the first process of its pid namespace.
inside() {
    local mode=$1 user=$2 tree foreign as=() id=0 manager state=''
    shift 2
    [ "$$" -eq 1 ] || broken 'not in a pid namespace of its own'
    if [ "$mode" = user ]; then
        id=$(id -u "$user")
        mount -t cgroup2 cgroup2 "$trees"
        foreign=$trees
    else
        mount -t tmpfs -o mode=755 cgroups "$trees"
        for tree in memory pids cpu; do
            mkdir "$trees/$tree"
            mount -t cgroup -o "$tree" cgroup "$trees/$tree"
        done
        mkdir "$trees/systemd" "$trees/unified"
        mount -t cgroup -o none,name=systemd cgroup "$trees/systemd"
        mount -t cgroup2 cgroup2 "$trees/unified"
        foreign="$trees/memory $trees/pids $trees/cpu $trees/systemd $trees/unified"
    fi
    # This process is in the root of what it sees. In version 2 one of another pid namespace is shown as
    # 0; there is one, unshare, which waits for this one. With more it is not our own part of the tree.
    for tree in $foreign; do
        grep -qx 1 "$tree/cgroup.procs" || broken "this process is not in the root of $tree"
        [ "$(grep -cx 0 "$tree/cgroup.procs")" -le 1 ] || broken "processes of others are in $tree"
    done
    mount -t tmpfs -o mode=755 run /run
    # systemd takes the first one for the sign that it may run.
    mkdir -p /run/systemd/system "/run/user/$id" /run/home
    chmod 0700 "/run/user/$id" /run/home
    chown "$id" "/run/user/$id" /run/home
    if [ "$mode" = user ]; then
        mkdir "$trees/own"
        printf '1\n' > "$trees/own/cgroup.procs"
        chown -R "$id" "$trees/own"
        as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --init-groups)
    fi
    export XDG_RUNTIME_DIR="/run/user/$id" HOME=/run/home OURS_FLEET_TEST_USER_MANAGER=$mode
    unset DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS
    # What is started from a place that its user may not read does not start.
    cd /
    ${as[@]+"${as[@]}"} /lib/systemd/systemd --user --log-level=warning < /dev/null &
    manager=$!
    for _ in $(seq 100); do
        state=$(${as[@]+"${as[@]}"} systemctl --user is-system-running 2>/dev/null) || true
        case "$state" in running | degraded) break ;; esac
        kill -0 "$manager" 2>/dev/null || broken 'the user manager did not start'
        sleep 0.1
    done
    case "$state" in running | degraded) ;; *) broken "the user manager is $state" ;; esac
    local status=0
    cd "$directory"
    ${as[@]+"${as[@]}"} "$@" || status=$?
    ${as[@]+"${as[@]}"} systemctl --user exit || true
    wait "$manager" || true
    exit "$status"
}

if [ "${1:-}" = --inside ]; then
    directory=$2
    shift 2
    inside "$@"
fi

mode=${1:-}
case "$mode" in
    user) [ "$#" -ge 3 ] || usage; user=$2; shift 2 ;;
    root) [ "$#" -ge 2 ] || usage; user=root; shift ;;
    *) usage ;;
esac
[ "$(id -u)" -eq 0 ] || cannot 'only root can make the namespaces that this needs'
[ -x /lib/systemd/systemd ] || cannot 'systemd is not installed'
id -u "$user" > /dev/null 2>&1 || cannot "there is no user $user"
if [ "$mode" = user ]; then [ "$(id -u "$user")" -ne 0 ] || usage; fi
own=ours-fleet-test-$$
if [ "$mode" = user ]; then needed=unified; else needed='memory pids cpu systemd unified'; fi
for tree in $needed; do
    [ -e "$trees/$tree/cgroup.procs" ] || cannot "there is no tree of control groups at $trees/$tree"
done
before=$(cat /proc/1/cgroup)

child=''
clean() {
    local status=$? left tree
    trap - EXIT INT TERM HUP
    # With its first process the whole pid namespace ends.
    if [ -n "$child" ]; then kill -KILL "$child" 2>/dev/null || true; wait "$child" 2>/dev/null || true; fi
    for _ in $(seq 100); do
        left=''
        for tree in $needed; do
            [ -d "$trees/$tree/$own" ] || continue
            find "$trees/$tree/$own" -depth -type d -exec rmdir {} + 2>/dev/null || true
            if [ -d "$trees/$tree/$own" ]; then left="$left $trees/$tree/$own"; fi
        done
        [ -n "$left" ] || break
        sleep 0.05
    done
    [ -z "$left" ] || broken "left behind:$left"
    [ "$before" = "$(cat /proc/1/cgroup)" ] || broken '/proc/1/cgroup has changed'
    exit "$status"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

script=$(cd "$(dirname "$0")" && pwd -P)/$(basename "$0")
for tree in $needed; do mkdir "$trees/$tree/$own"; done
(
    for tree in $needed; do printf '%s\n' "$BASHPID" > "$trees/$tree/$own/cgroup.procs"; done
    for tree in $needed; do
        grep -qx "$BASHPID" "$trees/$tree/$own/cgroup.procs" || broken "not in $trees/$tree/$own"
    done
    exec unshare -m -C -p -i -u -f --mount-proc --kill-child --propagation private \
        bash "$script" --inside "$PWD" "$mode" "$user" "$@" < /dev/null
) &
child=$!
status=0
wait "$child" || status=$?
child=''
exit "$status"

#!/bin/sh
# tools/apart.sh PROGRAM [ARGUMENT]...: run PROGRAM in network, mount and process namespaces of its own, with a lock of
# its own, so that emulations in it neither see nor wait for those outside. Without root it just runs PROGRAM.
set -eu

[ "$(id -u)" = 0 ] || exec "$@"
# PROGRAM must not be the first process of its PID namespace: that one has to collect orphans.
exec unshare --net --mount --pid --fork --mount-proc --kill-child -- sh -euc '
    ip link set lo up
    folder=$(mktemp -d)
    mount -t tmpfs tmpfs "$folder"
    (umask 077; touch "$folder/lock" /run/testbed.lock)  # a lock that others can open is a lock that others can hold
    mount --bind "$folder/lock" /run/testbed.lock
    umount "$folder"
    rmdir "$folder"
    exec 3<&0
    "$@" <&3 3<&- &
    wait "$!"
' sh "$@"

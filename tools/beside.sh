#!/bin/sh
# tools/beside.sh COMMAND PROGRAM [ARGUMENT]...: run PROGRAM, and beside it COMMAND (one word) with the CPU that is left
# idle. What COMMAND prints comes afterwards, in one piece. Fails if either fails.
set -u

output=$(mktemp)
beside=$1
shift
# In a process group of its own, so that an interrupt ends all of it.
setsid chrt --idle 0 sh -c "$beside" >"$output" 2>&1 &
group=$!
trap 'kill -- "-$group" 2>/dev/null; rm -f "$output"' EXIT
trap 'exit 130' INT TERM
"$@"
status=$?
wait "$group" || status=$?
cat "$output"
exit "$status"

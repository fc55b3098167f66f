#!/bin/sh
# Writes constraints/ci.txt: the version of every package that tools/setup.sh installs, as the package index has them
# now. They are resolved in an empty environment, so that what else is installed on this machine does not matter.
set -eu

cd "$(dirname "$0")/.."
interpreter=/usr/bin/python3
extras=$(sed -n 's/^extras=//p' tools/setup.sh)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

$interpreter -m venv "$place/venv"
pip="$place/venv/bin/python -m pip"
$pip install --quiet --upgrade 'pip>=25.3'
mkdir "$place/source" # a build leaves files behind
cp -R setup.cfg pyproject.toml README.md LICENSE topologies workloads controller testbed "$place/source"
$pip install --quiet --build-constraint constraints/build.txt "$place/source[$extras]"
{
    echo "# The versions that CI runs; tools/setup.sh installs these. Renew with: make lock"
    echo "# $($interpreter -V)"
    # Debian's pyOpenSSL, which Ryu reaches through eventlet, works with Debian's cryptography and not with the newest.
    $pip freeze --all --exclude gpu-communication-testbed --exclude setuptools --exclude wheel --exclude cryptography
} >"$place/ci.txt"
grep -v '^#' "$place/ci.txt" | grep -v '^[A-Za-z0-9._-]*==[^ ]*$' && { echo "lock: not a version (above)" >&2; exit 1; }
mv "$place/ci.txt" constraints/ci.txt
chmod 644 constraints/ci.txt

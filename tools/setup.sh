#!/bin/sh
# Sets up this checkout on Debian or Ubuntu: system packages, .venv, Python packages, `python`.
# Says what it does, one line per step; does nothing when all is there; one line and status 1 when it cannot.
set -u

packages="mininet openvswitch-switch iproute2 ethtool iputils-ping python3-venv python3-pip nftables python3-nftables"
local_bin=/usr/local/bin
interpreter=/usr/bin/python3 # by name: another python3 first in PATH would not see Debian's Mininet
python=.venv/bin/python
stamp=.venv/testbed-setup
log=.testbed-setup.log
extras=docs,emulation,fast,plots,ryu,test
users_path=$PATH

cd "$(dirname "$0")/.." || exit 1
PATH=$PATH:/usr/sbin:/sbin:$local_bin
export PATH

say() { echo "setup: $*"; }

fail() {
    give_to_user
    echo "setup: $*" >&2
    exit 1
}

# Under sudo what is made in a user's own checkout belongs to that user, who goes on without.
give_to_user() {
    [ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ] && [ "$(stat -c %u .)" = "$SUDO_UID" ] || return 0
    chown -hR "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" .venv "$log" ./*.egg-info 2>/dev/null
    find . -path ./.venv -prune -o -name __pycache__ -user 0 -exec chown -hR "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" {} + 2>/dev/null
    return 0
}

# The cause of a failure in a few words: no network, or the last line of the log that names an error.
reason() {
    if grep -qiE 'connection (error|broken|refused)|connect to|could not (connect|resolve)|temporary failure' "$log"; then
        echo "where packages come from cannot be reached (no network?)"
        return
    fi
    grep -E '^(E:|ERROR:|error:|sudo:)|[Ee]rror' "$log" | tail -n 1 | cut -c 1-200
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else
        echo "sudo: not found" >&2
        return 1
    fi
}

missing_packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        for tool in mnexec ovs-vswitchd tc ethtool ping; do
            command -v $tool >/dev/null 2>&1 || fail "no $tool, and only Debian and Ubuntu packages are known here"
        done
        return
    fi
    for package in $packages; do
        case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
            installed) ;;
            *) printf '%s ' "$package" ;;
        esac
    done
}

# Installing a switch is not yet wanting its daemon to run: while this script lives, services stay as they are.
hold_services() {
    policy=/usr/sbin/policy-rc.d
    [ -e $policy ] && return
    printf '#!/bin/sh\n# left by a setup that was killed; harmless, may be deleted\nkill -0 %s 2>/dev/null && exit 101\nexit 0\n' $$ |
        as_root sh -c "cat >$policy && chmod 755 $policy" 2>>"$log" || return
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
    trap 'exit 1' INT TERM HUP
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1 </dev/null
}

install_packages() {
    missing=$(missing_packages) || exit 1
    [ -z "$missing" ] && return
    if ! as_root true 2>/dev/null; then
        fail "not installed: ${missing% }; installing needs root, run: sudo make setup"
    fi
    say "installing Debian packages: ${missing% }"
    hold_services
    # shellcheck disable=SC2086 # a list of names
    apt_install $missing && return
    say "updating the package lists"
    as_root apt-get update >>"$log" 2>&1 </dev/null
    # shellcheck disable=SC2086
    apt_install $missing || fail "cannot install ${missing% }: $(reason) (all of it: $log)"
}

# Where 'sudo python' looks: sudo's secure_path, which is not the PATH of the user who calls it.
roots_path() {
    path=$(PATH=$users_path sudo -n sh -c 'printf %s "$PATH"' 2>/dev/null)
    printf %s "${path:-/usr/local/sbin:$local_bin:/usr/sbin:/usr/bin:/sbin:/bin}"
}

roots_python() { env -i PATH="$(roots_path)" sh -c 'command -v python' 2>/dev/null; }

# Any Python will do, however old: it goes on in .venv. A pyenv shim without a version behind it does not run.
root_has_python() { env -i PATH="$(roots_path)" HOME="${HOME:-/}" python -c '' >/dev/null 2>&1; }

provide_python() {
    root_has_python && return
    found=$(roots_python)
    if [ -n "$found" ]; then
        say "root's 'python', $found, does not run: use 'sudo $python -m testbed' in place of 'sudo python -m testbed'"
        return
    fi
    case :$(roots_path): in
        *:$local_bin:*) as_root ln -s $interpreter $local_bin/python 2>>"$log" && made=$local_bin/python ;;
        *) apt_install python-is-python3 && made=$(roots_python) ;;
    esac
    if [ -n "${made:-}" ] && root_has_python; then
        say "root had no 'python': made $made -> $interpreter"
    else
        say "root has no 'python': use 'sudo $python -m testbed' in place of 'sudo python -m testbed'"
    fi
}

make_environment() {
    home="$(pwd) $($interpreter -V 2>&1)"
    [ -x $python ] && [ "$(cat .venv/testbed-home 2>/dev/null)" = "$home" ] && return
    [ -L .venv ] && fail ".venv is a link to $(readlink .venv), which set-up would empty; remove the link"
    say "making .venv with $interpreter"
    $interpreter -m venv --clear --system-site-packages .venv >>"$log" 2>&1 ||
        fail "cannot make .venv: $(reason) (all of it: $log)"
    echo "$home" >.venv/testbed-home
}

pip_install() {
    $python -m pip install --quiet --retries 2 --disable-pip-version-check --no-input "$@" >>"$log" 2>&1 ||
        fail "cannot install Python packages: $(reason) (all of it: $log)"
}

install_python_packages() {
    # The system's pip does not know --build-constraint, which pip has since 25.3.
    say "installing Python packages into .venv"
    export PIP_ROOT_USER_ACTION=ignore
    # Until version 0.2 this checkout was installed under the name of another project.
    $python -m pip uninstall --quiet --yes testbed >>"$log" 2>&1
    pip_install --upgrade --constraint constraints/ci.txt 'pip>=25.3'
    pip_install --build-constraint constraints/build.txt --constraint constraints/ci.txt --editable ".[$extras]"
}

# A run starts half a dozen processes; each would compile all of this where Python may not keep what it compiles.
compile_sources() {
    $python -m compileall -q topologies workloads controller testbed >>"$log" 2>&1
}

wanted() {
    pwd
    $interpreter -V 2>&1
    cat setup.cfg pyproject.toml constraints/*.txt tools/setup.sh | sha256sum
}

up_to_date() { [ -x $python ] && [ "$(cat $stamp 2>/dev/null)" = "$(wanted)" ] && [ -z "$(missing_packages)" ]; }

# For the tests of the report's page in a browser; without it they are skipped, so this never fails.
install_browser() {
    for name in chromium chromium-browser google-chrome; do
        command -v $name >/dev/null 2>&1 && return
    done
    true 2>/dev/null >"$log" || return 0
    as_root true 2>/dev/null || return 0
    say "installing chromium for the tests in a browser"
    apt_install chromium || say "cannot install chromium: $(reason); tests in a browser will be skipped"
}

# For the tests of real programs as jobs; without them those are skipped, so this never fails.
install_programs() {
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null && command -v mpirun >/dev/null 2>&1 && return
    true 2>/dev/null >"$log" || return 0
    as_root true 2>/dev/null || return 0
    say "installing Open MPI and mpi4py for the tests of real programs"
    apt_install openmpi-bin python3-mpi4py || say "cannot install Open MPI: $(reason); tests with it will be skipped"
}

main() {
    if [ -x $interpreter ]; then
        up_to_date && root_has_python && exit 0
        $interpreter -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            fail "$($interpreter -V) at $interpreter is too old: Python 3.11 or newer is needed (Debian 12, Ubuntu 24.04)"
    else
        fail "no $interpreter: install python3 first"
    fi
    true 2>/dev/null >"$log" || fail "cannot write here: $(pwd)"
    install_packages
    provide_python
    if ! up_to_date; then
        rm -f $stamp
        make_environment
        install_python_packages
        compile_sources
        wanted >$stamp
        give_to_user
    fi
    say "done"
}

chosen() {
    case "${1:-}" in
        browser) install_browser ;;
        programs) install_programs ;;
        *) main ;;
    esac
}

chosen "$@"

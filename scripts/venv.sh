#!/usr/bin/env bash
# Make the virtual environment $1 with Python 3.11 or newer: $PYTHON if set, else the newest one found.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
source "$here/packages.sh"
readonly VENV=$1

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local python
    if [ -n "${PYTHON:-}" ]; then
        if is_new_enough "$PYTHON"; then
            echo "$PYTHON"
            return 0
        fi
        echo "error: PYTHON=$PYTHON is not a Python 3.11 or newer; give another: make setup PYTHON=/path/to/python3.11" >&2
        return 1
    fi
    for python in python3.13 python3.12 python3.11 python3; do
        if is_new_enough "$python"; then
            echo "$python"
            return 0
        fi
    done
    echo "error: no Python 3.11 or newer on PATH; install one, or give it: make setup PYTHON=/path/to/python3.11" >&2
    return 1
}

# Debian and Ubuntu ship ensurepip in a package of its own, without which venv cannot bring pip.
ensure_venv() {
    local version
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return 0
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    install_one_of "the venv module of Python $version" "apt-get=python$version-venv" apt-get=python3-venv
}

if [ -x "$VENV/bin/python" ] && is_new_enough "$VENV/bin/python"; then
    exit 0
fi
python=$(find_python)
ensure_venv "$python"
"$python" -m venv --clear "$VENV"
echo "made $VENV with $("$VENV/bin/python" --version)"

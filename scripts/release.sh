#!/usr/bin/env bash
# Build wheel and sdist into dist/, check them, and run the demo from the wheel in an empty environment of each Python there is.
# Usage: scripts/release.sh PYTHON (one with the packages build and twine). PYTHONS="python3.11 python3.12" chooses others to try.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly PYTHON=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist
"$PYTHON" -m build --outdir dist . > "$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
"$PYTHON" -m twine check --strict dist/*

tried=0
for python in ${PYTHONS:-python3.11 python3.12 python3.13}; do
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2> /dev/null) || { echo "$python: not on this machine, so not tried"; continue; }
    environment=$work/python-$version
    "$python" -m venv "$environment"
    wheel=$(echo dist/*.whl)
    "$environment/bin/pip" install --quiet "$PWD/$wheel[spark,sql,demo]"
    # From another folder, so that nothing of the clone is imported.
    (cd "$work" && PYSPARK_PYTHON="$environment/bin/python" "$environment/bin/windowpane" demo > "$work/$version.log" 2>&1) || {
        tail -40 "$work/$version.log" >&2
        exit 1
    }
    grep -a "In the final results of" "$work/$version.log"
    echo "Python $version: the demo ran from $(basename "$wheel")"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "error: none of the Pythons is on this machine; name one: PYTHONS=/path/to/python3.11 make release" >&2; exit 1; }

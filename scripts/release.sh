#!/usr/bin/env bash
# Build wheel and sdist into dist/, and prove them: in an empty environment of each Python there is, and of each Spark line on
# the first of them, the demo runs from the wheel, the tutorial runs, and every golden checkpoint is opened and goes on.
# Beside them: a bill of materials (CycloneDX) of the wheel with all its extras, their licences, known vulnerabilities, and the
# notes of the version, from the changelog.
# Usage: scripts/release.sh PYTHON (one that may install packages). PYTHONS="python3.11 python3.12" and SPARKS="4.3" choose others;
# AUDIT=no leaves out the vulnerabilities, where PyPI is a mirror that does not know them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly PYTHON=$1 NEWEST=4.3
readonly EXTRAS=spark,sql,postgres,redis,kafka,delta,iceberg,metrics,ui
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist
"$PYTHON" -m pip install --quiet "build>=1.2" "twine>=6.0"
"$PYTHON" -m build --outdir dist . > "$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
"$PYTHON" -m twine check --strict dist/*
wheel=$PWD/$(echo dist/*.whl)
version=$("$PYTHON" -c 'import importlib.metadata as m; print(m.version("windowpane"))')

# The suite without the package: what it imports is the wheel.
mkdir "$work/suite"
cp -r tests verify docs examples README.md CHANGELOG.md pyproject.toml mkdocs.yml "$work/suite"

# Arguments: an interpreter, a line of Spark.
prove() {
    local environment=$work/$1-spark-$2 python
    "$1" -m venv "$environment"
    python=$environment/bin/python
    "$python" -m pip install --quiet "$wheel[$EXTRAS,demo]" "pyspark[connect]==$2.*" "pytest>=8.2" "hypothesis>=6.100"
    (cd "$work" && PYSPARK_PYTHON=$python "$environment/bin/windowpane" demo > "$work/log" 2>&1) || { tail -40 "$work/log" >&2; return 1; }
    grep -a "In the final results of" "$work/log"
    (cd "$work/suite" && PYSPARK_PYTHON=$python "$python" -m pytest -q tests/golden/test_checkpoints.py tests/docs/test_docs.py \
        -k "golden or tutorial" > "$work/log" 2>&1) || { tail -60 "$work/log" >&2; return 1; }
    tail -1 "$work/log"
    echo "$("$python" --version), Spark $2: demo, tutorial and golden checkpoints from $(basename "$wheel")"
    rm -rf "$environment"
}

tried=0
for python in ${PYTHONS:-python3.11 python3.12 python3.13}; do
    "$python" -c "import venv, ensurepip" 2> /dev/null || { echo "$python: not on this machine, so not tried"; continue; }
    for spark in $([ "$tried" -eq 0 ] && echo "${SPARKS:-4.0 4.1 4.2 $NEWEST}" || echo "$NEWEST"); do
        prove "$python" "$spark"
        tried=$((tried + 1))
    done
done
[ "$tried" -gt 0 ] || { echo "error: none of the Pythons is on this machine; name one: PYTHONS=/path/to/python3.11 make release" >&2; exit 1; }

"$PYTHON" -m venv "$work/bill"
"$work/bill/bin/python" -m pip install --quiet "$wheel[$EXTRAS]"
"$PYTHON" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet "cyclonedx-bom>=5" "pip-audit>=2.7" "pip-licenses>=5"
"$work/tools/bin/cyclonedx-py" environment --output-reproducible --of JSON -o "dist/windowpane-$version.cdx.json" "$work/bill/bin/python"
"$work/tools/bin/pip-licenses" --python "$work/bill/bin/python" --format=markdown --with-urls > "dist/windowpane-$version-licences.md"
! grep -E "^\|[^|]*\|[^|]*\| UNKNOWN" "dist/windowpane-$version-licences.md" || { echo "error: a package says no licence" >&2; exit 1; }
"$work/bill/bin/python" -m pip freeze --exclude windowpane > "$work/versions"
if [ "${AUDIT:-yes}" = no ]; then
    echo "not audited for known vulnerabilities: AUDIT=no"
else # strict: a package that the service does not know, or a service that is not reached, is no pass
    "$work/tools/bin/pip-audit" --strict --no-deps --disable-pip --requirement "$work/versions"
fi
"$PYTHON" scripts/release_notes.py "$version" > "dist/windowpane-$version-notes.md"
ls -l dist
echo "To publish: git tag --sign v$version --file dist/windowpane-$version-notes.md && git push origin v$version"

#!/usr/bin/env bash
# Run the Spark tests on every Spark line windowpane supports, each in a virtual environment of its own under .venvs/.
# Those of connectors have a real Kafka, and the jars of Kafka, Delta and Iceberg that fit; Maven brings them.
# Arguments: the lines to test (default: all), for example: scripts/test_spark_versions.sh 4.0 4.3
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ "$#" -eq 0 ]; then
    set -- 4.0 4.1 4.2 4.3
fi

run_line() {
    local line=$1 venv=.venvs/$1
    scripts/venv.sh "$venv" &&
        "$venv/bin/python" -m pip install --quiet --editable ".[spark,sql,dev,demo]" "pyspark[connect]==$line.*" &&
        "$venv/bin/python" -m pytest -q -m spark tests/spark tests/connectors
}

failed=""
for line in "$@"; do
    echo "== Spark $line"
    run_line "$line" || failed="$failed $line"
done
if [ -n "$failed" ]; then
    echo "failed on Spark:$failed" >&2
    exit 1
fi
echo "passed on Spark: $*"

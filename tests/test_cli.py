"""The command line, run as people run it; the prompt in a real terminal.

What a process of its own would tell nothing about runs in that of the tests: a Python that imports everything costs a second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import windowpane
from windowpane.cli import app

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "windowpane"]
TERMINAL = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "120", "PROMPT_TOOLKIT_NO_CPR": "1"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), **TERMINAL}


def run(*arguments: str, stdin: str = "", seconds: int = 60) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, env=ENVIRONMENT, timeout=seconds, check=False)


def run_here(*arguments: str, stdin: str = "") -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, list(arguments), input=stdin, env=TERMINAL)


def test_version() -> None:
    assert run("--version").stdout == f"windowpane {windowpane.__version__}\n"


def test_a_script_prints_its_views() -> None:
    done = run("sql", str(ROOT / "examples" / "stock_prices.sql"))
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["1", "2024-05-02", "09:32:00", "103.25", "1.75"] in lines
    assert ["1", "2024-05-02", "09:31:00", "102", "0.5"] in lines
    assert ["1", "2024-05-02", "09:32:00", "103.25", "1.25"] in lines
    assert "CREATE_MATERIALIZED_VIEW" in done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_a_script_runs_on_spark() -> None:
    view = "CREATE TABLE t (v int); CREATE MATERIALIZED VIEW m AS SELECT v + 1 AS w FROM t"
    script = f"{view}; INSERT INTO t VALUES (1); FLUSH; SELECT w FROM m"
    done = run("sql", "-", "--spark", "--json", stdin=script, seconds=300)  # Spark starts, on a machine that may be busy
    assert json.loads(done.stdout.splitlines()[-1])["rows"] == [["2"]], done.stderr
    said = [line for line in done.stderr.splitlines() if line.endswith(" ...")]
    assert [line.partition(",")[0].partition(";")[0] for line in said] == ["starting Spark", "starting the streaming query of m"]


def test_json_for_machines() -> None:
    done = run_here("sql", "-", "--json", stdin="SELECT 1 AS one, NULL AS nothing, 1.50 AS price; FLUSH")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "tag": "SELECT 1",
            "columns": ["one", "nothing", "price"],
            "types": ["integer", "character varying", "numeric"],
            "rows": [["1", None, "1.5"]],
        },
        {"tag": "FLUSH"},
    ]


def test_an_error_names_file_line_and_column(tmp_path: Path) -> None:
    script = tmp_path / "broken.sql"
    script.write_text("SELECT 1;\nSELECT nope\nFROM nowhere;\n")
    done = run_here("sql", str(script))
    assert done.exit_code == 1
    assert f"{script}:3:6: SqlNameError: line 3, column 6: there is no table or view 'nowhere'" in done.stderr.replace("\n", " ")
    assert "1" in done.stdout


def test_a_file_that_is_not_there_is_a_wrong_command_line() -> None:
    done = run_here("sql", "nowhere.sql")
    assert done.exit_code == 2
    assert "nowhere.sql" in done.stderr


def test_flushes_go_on_until_the_process_is_told_to_end(tmp_path: Path) -> None:
    files, out = tmp_path / "in", tmp_path / "out"
    files.mkdir()
    script = tmp_path / "script.sql"
    script.write_text(
        f"CREATE SOURCE s (k int) WITH (connector = 'csv', path = '{files}', malformed = 'fail');"
        "CREATE MATERIALIZED VIEW m AS SELECT sum(k) AS total FROM s;"
        f"CREATE SINK o FROM m WITH (connector = 'parquet', path = '{out}')"
    )
    command = [*COMMAND, "sql", str(script), "--flush-every", "50 ms"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for number, total in enumerate((1, 3)):
        put(files / f"{number}.csv", f"k\n{number + 1}\n")
        wait_until_last(out, total)
    put(files / "bad.csv", "k\nx\n")
    while "MalformedRowError" not in (line := process.stderr.readline()):
        assert line, "the process has ended"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)  # it may say once more what it could not read
    assert process.returncode == 0


def _totals(out: Path) -> list[int]:
    """Return what the view came to, as the changes of a sink tell it."""
    rows = [row for file in sorted(out.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return [row["total"] for row in rows if row["_change_type"] in ("insert", "update_postimage") and row["total"] is not None]


def put(file: Path, text: str) -> None:
    """Let a file appear whole."""
    draft = file.with_name(f".{file.name}")
    draft.write_text(text)
    draft.rename(file)


def wait_until_last(out: Path, total: int) -> None:
    end = time.monotonic() + 60
    while _totals(out)[-1:] != [total]:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--flush-every", "soon", "-"], "soon"),
        (["--flush-every", "0 s", "-"], "more than nothing"),
        (["--flush-every", "1 s"], "needs a script"),
    ],
)
def test_a_pace_that_is_none(arguments: list[str], words: str) -> None:
    done = run_here("sql", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_explain_shows_plans_and_runs_nothing() -> None:
    done = run_here("explain", str(ROOT / "examples" / "stock_prices.sql"))
    assert done.exit_code == 0, done.stderr
    assert "Over: lag(" in done.stdout
    assert "Scan: stock_prices" in done.stdout


def test_a_store_keeps_tables_and_views(tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    run_here("sql", "-", "--store", store, stdin="CREATE TABLE t (k int); CREATE MATERIALIZED VIEW n AS SELECT count(*) FROM t;")
    run_here("sql", "-", "--store", store, stdin="INSERT INTO t VALUES (1), (2); FLUSH")
    done = run("sql", "-", "--store", store, "--json", stdin="SELECT * FROM n")
    assert json.loads(done.stdout)["rows"] == [["2"]]


@pytest.fixture
def prompt(tmp_path: Path):
    arguments = ["-m", "windowpane", "sql", "--history", str(tmp_path / "history")]
    child = pexpect.spawn(sys.executable, arguments, env=ENVIRONMENT, encoding="utf-8", timeout=30, dimensions=(40, 120))
    child.expect("windowpane>")
    yield child
    child.close(force=True)


def test_the_prompt_in_a_terminal(prompt: pexpect.spawn, tmp_path: Path) -> None:
    prompt.sendline("CREATE TABLE t (k int, v int);")
    prompt.expect("CREATE_TABLE")
    prompt.sendline("SELECT 40 + 2")
    prompt.expect("->")
    prompt.sendline("  AS answer;")
    prompt.expect("answer")
    prompt.expect("42")
    prompt.expect("1 row")
    prompt.sendline("SELECT nope FROM t;")
    prompt.expect("SqlNameError")
    prompt.expect("there is no column 'nope' here; there are k, v")
    prompt.send("SELE\t")
    prompt.expect("CT")
    prompt.send(" * FROM t;\r")
    prompt.expect("0 rows")
    prompt.sendline("quit")
    prompt.expect(pexpect.EOF)
    assert "AS answer;" in (tmp_path / "history").read_text()


_WIDE = "SELECT " + ", ".join(f"'value {number}' AS a_long_name_{number}" for number in range(11))


def test_a_file_gets_every_column_of_a_wide_result() -> None:
    lines = run_here("sql", "-", stdin=_WIDE).stdout.splitlines()
    assert lines[0].split() == [f"a_long_name_{number}" for number in range(11)]
    assert all(f"value {number}" in lines[2] for number in range(11))


def test_results_are_printed_as_csv() -> None:
    script = "SELECT 1 AS n, NULL AS m, '' AS e, 'a,\"b' AS \"x y\"; CREATE TABLE t (k int); SELECT k FROM t"
    assert run_here("sql", "-", "--format", "csv", stdin=script).stdout == 'n,m,e,x y\n1,,"","a,""b"\nk\n'


def test_format_json_is_json() -> None:
    said = [run_here("sql", "-", *option, stdin="SELECT 1 AS n").stdout for option in (("--format", "json"), ("--json",))]
    assert [json.loads(each)["rows"] for each in said] == [[["1"]]] * 2

"""The runner of sqllogictest files: what each record of a file comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.slt.__main__ import main
from verify.slt.parser import find_files
from verify.slt.runner import run_file
from windowpane.sql import Session

TABLE = "statement ok\nCREATE TABLE t (a int, b text)\n\nstatement ok\nINSERT INTO t VALUES (1, 'x'), (2, ''), (10, NULL)\n\n"


@pytest.fixture
def outcomes(tmp_path: Path):
    """Run a text, behind a table t, and return kind and reason of each record but those that make the table."""

    def run(text: str, match_errors: bool = False) -> list[tuple[str, str]]:
        file = tmp_path / "file.slt"
        file.write_text(TABLE + text)
        found = run_file(file, lambda: Session(store=":memory:"), match_errors=match_errors)
        return [(outcome.kind.value, outcome.reason) for outcome in found][2:]

    return run


PASSED, WRONG = ("passed", ""), ("wrong", "")


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        ("query IT rowsort\nSELECT * FROM t\n----\n1 x\n10   NULL\n2 (empty)\n", PASSED),
        ("query IT rowsort label\nSELECT * FROM t\n----\n1 x\n10 NULL\n", WRONG),
        ("query I nosort\nSELECT a FROM t ORDER BY a DESC\n----\n10\n2\n1\n", PASSED),
        ("query IT\nSELECT 1.50, timestamp '2024-01-01 10:00:00.01'\n----\n1.500 2024-01-01 10:00:00.010\n", PASSED),
        ("query IT\nSELECT 1.50, timestamp '2024-01-01 10:00:00.01'\n----\n1.505 2024-01-01 10:00:00.010\n", WRONG),
        ("query T\nSELECT '1.5'\n----\n1.50\n", WRONG),
        ("query T\nSELECT 1.5::double precision\n----\n1.50\n", WRONG),
        ("query T\nSELECT 1\n----\n1.0\n", WRONG),
        ("query TTT\nSELECT 'a 1.0', 2.50, 'b 3.0'\n----\na 1.0 2.5000 b 3.0\n", PASSED),
        ("query TTT\nSELECT 'a 1.0', 2.50, 'b 3.0'\n----\na 1.0 2.5000 b 3.00\n", WRONG),
        ("query TT\nSELECT * FROM (VALUES ('1.0', 1.0), ('1', 2.5)) AS v\n----\n1 2.50\n1.0 1.000\n", PASSED),
        ("query TT\nSELECT * FROM (VALUES ('1.0', 1.0), ('1', 2.5)) AS v\n----\n1.0 2.50\n1 1.000\n", WRONG),
        ("query T valuesort\nSELECT a + 0.0 FROM t\n----\n1.0\n10.00\n2.0\n", PASSED),
        ("query I\nSELECT 100\n----\n1\n", WRONG),
        ("query I\nSELECT a FROM t ORDER BY a\n----\n10\n2\n1\n", WRONG),
        ("query I\nSELECT a FROM t\n----\n10\n2\n1\n", PASSED),
        ("query II\nSELECT a, a % 2 FROM t ORDER BY a % 2\n----\n10 0\n2 0\n1 1\n", PASSED),
        ("query II\nSELECT a, a % 2 FROM t ORDER BY a % 2\n----\n1 1\n10 0\n2 0\n", WRONG),
        ("query II valuesort\nSELECT a, a + 1 FROM t WHERE a < 3\n----\n1\n2\n2\n3\n", PASSED),
        ("control resultmode valuewise\n\nquery II\nSELECT a, a + 1 FROM t WHERE a < 2\n----\n1\n2\n", PASSED),
        # printf '1\n10\n2\n' | md5sum
        (
            "hash-threshold 2\n\nquery I rowsort\nSELECT a FROM t\n----\n3 values hashing to 91ff90854a35e9226df03b9b06c2f9c8\n",
            PASSED,
        ),
        ("query T\nSELECT 'one two three'\n----\none <slt:ignore> three\n", PASSED),
        ("statement count 1\nDELETE FROM t WHERE a = 2\n", PASSED),
        ("statement count 2\nDELETE FROM t WHERE a = 2\n", WRONG),
        ("statement error\nSELECT c FROM t\n", PASSED),
        ("statement error\nSELECT a FROM t\n", WRONG),
        ("query error no such thing\nSELECT c FROM t\n", PASSED),
        (
            "statement error\nSELECT c FROM t\n----\nERROR\n\nCaused by:\n  no column c\n\n\nquery I\nSELECT 1\n----\n1\n",
            PASSED,
        ),
        (
            "skipif windowpane\nstatement ok\nNONSENSE\n\nonlyif madsim\nstatement ok\nNONSENSE\n\nquery I\nSELECT 1\n----\n1\n",
            PASSED,
        ),
        ("let n, m\nSELECT 4, 5\n\nquery I\nSELECT $n + $m\n----\n9\n", PASSED),
        ("control substitution on\n\nquery I\nSELECT ${WINDOWPANE_ABSENT:7}\n----\n7\n", PASSED),
        ("system ok\nrm -rf x\n----\nout\n\n\n", ("refused", "commands of the shell are not run")),
        ("statement ok\nSELECT 1 / 0\n", WRONG),
        ("query I retry 3 backoff 1s\nSELECT a FROM t WHERE a = 1\n----\n1\n", PASSED),
        ("statement ok\n\nSELECT 1\n", PASSED),
        ("statement ok\n", WRONG),
        ("nonsense\n", WRONG),
        ("halt\n\nstatement ok\nNONSENSE\n", None),
    ],
)
def test_record(outcomes, record: str, outcome: tuple[str, str] | None) -> None:
    got = outcomes(record)

    assert got == [outcome] * len(got)
    assert bool(got) == (outcome is not None)


def test_messages_are_compared_when_asked_to(outcomes) -> None:
    records = "statement error no such thing\nSELECT c FROM t\n\nstatement error no column 'c'\nSELECT c FROM t\n"

    assert outcomes(records, match_errors=True) == [WRONG, PASSED]


def test_what_hangs_on_a_refused_statement_is_refused_with_it(outcomes) -> None:
    records = (
        "statement ok\nCREATE MATERIALIZED VIEW v AS SELECT no_such_function(a) FROM t\n\n"
        "query I\nSELECT * FROM v\n----\n1\n\n"
        "statement ok\nINSERT INTO t SELECT no_such_function(1)\n\n"
        "query I\nSELECT count(*) FROM t\n----\n4\n\n"
        "statement ok\nDROP TABLE t\n\n"
        "statement ok\nCREATE TABLE t (a int)\n\n"
        "query I\nSELECT count(*) FROM t\n----\n4\n"
    )
    reason = "there is no function 'no_such_function'"

    hangs = ("refused", f"hangs on: {reason}")
    assert outcomes(records) == [("refused", reason), hangs, ("refused", reason), hangs, PASSED, PASSED, WRONG]


def test_what_reads_a_relation_that_lacks_something_lacks_it_too(outcomes) -> None:
    records = (
        "statement ok\nCREATE MATERIALIZED VIEW v AS SELECT a FROM t\n\n"
        "statement ok\nCREATE MATERIALIZED VIEW n AS SELECT count(*) FROM v\n\n"
        "statement error\nDROP TABLE t\n\n"
        "statement ok\nDROP TABLE t\n\n"
        "query I\nSELECT * FROM n\n----\n4\n\n"
        "statement ok\nALTER MATERIALIZED VIEW v SET SCHEMA other\n\n"
        "query I\nSELECT * FROM n\n----\n4\n"
    )
    dropped, altered = "'v' reads 't'", "ALTER MATERIALIZED VIEW SET SCHEMA is not supported"

    got = outcomes(records)
    assert got == [PASSED, PASSED, PASSED, ("refused", dropped), WRONG, ("refused", altered), ("refused", f"hangs on: {altered}")]


def test_rows_of_an_altered_view_are_not_compared_with_those_of_risingwave(outcomes) -> None:
    """RisingWave lets it take changes from then on alone (e2e_test/streaming/alter_mv); here it has the rows of its new query."""
    records = (
        "statement ok\nCREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a > 1\n\n"
        "statement ok\nALTER MATERIALIZED VIEW v AS SELECT a FROM t\n\n"
        "query I\nSELECT count(*) FROM v\n----\n17\n"
    )
    reason = "hangs on: RisingWave leaves the rows of an altered view as they were"

    assert outcomes(records) == [PASSED, PASSED, ("refused", reason)]


def test_a_table_lacks_what_a_refused_sink_would_bring(outcomes) -> None:
    records = "statement ok\nCREATE SINK s INTO t AS SELECT 1, 'y'\n\nquery I\nSELECT count(*) FROM t\n----\n4\n"
    reason = "CREATE SINK INTO a table is not supported"

    assert outcomes(records) == [("refused", reason), ("refused", f"hangs on: {reason}")]


def test_an_exception_of_another_kind_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file.slt"
    file.write_text("statement ok\nSELECT 1\n\nstatement error\nSELECT 1\n")
    monkeypatch.setattr(Session, "run", lambda *_: 1 / 0)

    assert [outcome.kind.value for outcome in run_file(file, lambda: Session(store=":memory:"))] == ["crashed", "crashed"]


def test_a_mistake_of_ours_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file.slt"
    file.write_text("statement error\nSELECT 1\n")
    monkeypatch.setattr(Session, "_select", lambda *_: 1 / 0)

    assert [outcome.kind.value for outcome in run_file(file, lambda: Session(store=":memory:"))] == ["crashed"]


def test_files_of_a_folder_are_those_that_no_other_includes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.slt.part").write_text("query I\nSELECT 1\n----\n1\n")
    (tmp_path / "parts" / "two.slt.part").write_text("query I\nSELECT 1\n----\n2\n")
    (tmp_path / "main.slt").write_text("include ./parts/*.slt.part\n\ninclude ./absent.slt.part\n")
    (tmp_path / "alone.slt.part").write_text("statement ok\nSELECT 1 FROM absent\n")

    assert [file.name for file in find_files([tmp_path])] == ["alone.slt.part", "main.slt"]
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("wrong ")
    assert printed[0].endswith("two.slt.part:1")
    assert printed[-2:] == ["refused 1: there is no table or view 'absent'; there are none", "1 passed, 2 failed, 1 skipped"]

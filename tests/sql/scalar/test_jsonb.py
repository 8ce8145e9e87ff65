"""Functions and operators of jsonb and arrays: values are those that PostgreSQL 15 gives, keys in RisingWave's order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from windowpane.errors import InvalidTextError, InvalidValueError, OutOfRangeError, SqlError, SqlTypeError
from windowpane.sql import Session

PRETTY = """{
    "a": {
        "c": null
    },
    "b": [
        1
    ]
}"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    ("expression", "kind", "text"),
    [
        ("'{\"a\":1,\"b\":2}'::jsonb ? 'b'", "boolean", "t"),
        ("'[\"a\",\"b\"]'::jsonb ? 'b'", "boolean", "t"),
        ("'\"a\"'::jsonb ? 'a'", "boolean", "t"),
        ("'[1]'::jsonb ? '1'", "boolean", "f"),
        ("'{\"a\":1}'::jsonb ?| ARRAY['c','a']", "boolean", "t"),
        ("'{\"a\":1}'::jsonb ?& ARRAY['c','a']", "boolean", "f"),
        ("'{\"a\":1}'::jsonb ?& ARRAY['a',NULL]", "boolean", "t"),
        ("'[1,2,[1,3]]'::jsonb @> '[1,3]'", "boolean", "f"),
        ("'[1,2,[1,3]]'::jsonb @> '[[3]]'", "boolean", "t"),
        ('\'{"a":{"b":1,"c":2}}\'::jsonb @> \'{"a":{"c":2.0}}\'', "boolean", "t"),
        ('\'["a","b"]\'::jsonb @> \'"a"\'', "boolean", "t"),
        ("'\"a\"'::jsonb @> '[\"a\"]'", "boolean", "f"),
        ("'{\"a\":[1]}'::jsonb @> '{\"a\":1}'", "boolean", "f"),
        ("'[true]'::jsonb @> '[1]'", "boolean", "f"),
        ('\'{"b":2}\' <@ \'{"a":1,"b":2}\'::jsonb', "boolean", "t"),
        ('\'{"a":1,"b":2}\'::jsonb || \'{"b":3}\'', "jsonb", '{"a": 1, "b": 3}'),
        ("'[1,2]'::jsonb || '{\"a\":1}'", "jsonb", '[1, 2, {"a": 1}]'),
        ("'1'::jsonb || 'null'", "jsonb", "[1, null]"),
        ("'{\"a\":1,\"b\":2}'::jsonb - 'a'", "jsonb", '{"b": 2}'),
        ('\'["a","b","a"]\'::jsonb - \'a\'', "jsonb", '["b"]'),
        ("'{\"a\":1,\"b\":2}'::jsonb - ARRAY['a','c']", "jsonb", '{"b": 2}'),
        ("'[10,20,30]'::jsonb - 1", "jsonb", "[10, 30]"),
        ("'[10,20,30]'::jsonb - -1", "jsonb", "[10, 20]"),
        ("'[10]'::jsonb - 5", "jsonb", "[10]"),
        ("'{\"a\":{\"b\":[1,2]}}'::jsonb #- '{a,b,-1}'", "jsonb", '{"a": {"b": [1]}}'),
        ("'{\"a\":1}'::jsonb #- '{b,c}'", "jsonb", '{"a": 1}'),
        ("'{\"a\":{\"b\":[\"x\",\"y\"]}}'::jsonb #> ARRAY['a','b','1']", "jsonb", '"y"'),
        ("'{\"a\":{\"b\":[\"x\",null]}}'::jsonb #>> ARRAY['a','b','0']", "character varying", "x"),
        ("'{\"a\":{\"b\":[\"x\",null]}}'::jsonb #>> ARRAY['a','b','1']", "character varying", None),
        ("'{\"a\":[1]}'::jsonb #> ARRAY['a',NULL]", "jsonb", None),
        ("jsonb_extract_path('{\"a\":{\"b\":[10,20]}}', 'a', 'b', '-1')", "jsonb", "20"),
        ("jsonb_extract_path_text('{\"a\":{\"b\":\"x\"}}', 'a', 'b')", "character varying", "x"),
        ("jsonb_extract_path_text('{\"a\":{\"b\":[1,2]}}', 'a', 'b')", "character varying", "[1, 2]"),
        (
            "jsonb_set('[{\"f1\":1,\"f2\":null},2,null,3]', '{0,f1}', '[2,3,4]', false)",
            "jsonb",
            '[{"f1": [2, 3, 4], "f2": null}, 2, null, 3]',
        ),
        ("jsonb_set('[{\"f1\":1,\"f2\":null},2]', '{0,f3}', '[2,3,4]')", "jsonb", '[{"f1": 1, "f2": null, "f3": [2, 3, 4]}, 2]'),
        ("jsonb_set('[1,2]', '{9}', '3')", "jsonb", "[1, 2, 3]"),
        ("jsonb_set('[1,2]', '{-9}', '3')", "jsonb", "[3, 1, 2]"),
        ("jsonb_set('{\"a\":1}', '{b,c}', '3')", "jsonb", '{"a": 1}'),
        ("jsonb_set('{\"a\":1}', '{b}', '3', false)", "jsonb", '{"a": 1}'),
        ("jsonb_set('{\"a\":1}', '{}', '3')", "jsonb", '{"a": 1}'),
        ('jsonb_strip_nulls(\'[{"f1":1,"f2":null},2,null,{"a":{"b":null}}]\')', "jsonb", '[{"f1": 1}, 2, null, {"a": {}}]'),
        (
            "jsonb_build_array(1, 'foo', NULL, 1.5, true, date '2024-01-02', ARRAY[1,2], '{\"a\":1}'::jsonb)",
            "jsonb",
            '[1, "foo", null, 1.5, true, "2024-01-02", [1, 2], {"a": 1}]',
        ),
        ("jsonb_build_object('foo', 1, 2, 'bar', true, NULL)", "jsonb", '{"2": "bar", "foo": 1, "true": null}'),
        ("jsonb_build_object()", "jsonb", "{}"),
        ("jsonb_build_object('a', 1, 'a', 2)", "jsonb", '{"a": 2}'),
        ("jsonb_object('{a,1,b,def}')", "jsonb", '{"a": "1", "b": "def"}'),
        ("jsonb_object(ARRAY['a',NULL])", "jsonb", '{"a": null}'),
        ("jsonb_object('{a,b}', '{1,2}')", "jsonb", '{"a": "1", "b": "2"}'),
        ("ARRAY[1,2,3] @> ARRAY[3,1,3]", "boolean", "t"),
        ("ARRAY[1,NULL] @> ARRAY[NULL]::int[]", "boolean", "f"),
        ("ARRAY[1] <@ ARRAY[2,1]", "boolean", "t"),
        ("ARRAY[1,2] && ARRAY[2,3]", "boolean", "t"),
        ("ARRAY[1,NULL] && ARRAY[NULL,2]", "boolean", "f"),
        ("'abc' ^@ 'ab'", "boolean", "t"),
        ("NULL::jsonb @> '{}'", "boolean", None),
        ("'{\"a\":1}' IS JSON", "boolean", "t"),
        ("'{\"a\":1' IS JSON", "boolean", "f"),
        ("'[1]' IS JSON ARRAY", "boolean", "t"),
        ("'[1]' IS NOT JSON OBJECT", "boolean", "t"),
        ("' 1' IS JSON SCALAR", "boolean", "t"),
        ('jsonb_pretty(\'{"b":[1],"a":{"c":null}}\')', "character varying", PRETTY),
    ],
)
def test_a_value_is_that_of_postgresql(session: Session, expression: str, kind: str, text: str | None) -> None:
    result = session.query(f"SELECT {expression}")
    assert (str(result.types[0]), result.text_rows()) == (kind, [[text]])


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        ("'1'::jsonb - 'a'", InvalidValueError, "cannot delete from scalar"),
        ("'{}'::jsonb - 1", InvalidValueError, "cannot delete from object using integer index"),
        ("'1'::jsonb #- '{a}'", InvalidValueError, "cannot delete path in scalar"),
        ("jsonb_set('1', '{a}', '2')", InvalidValueError, "cannot set path in scalar"),
        ("jsonb_set('[1]', '{a}', '2')", InvalidTextError, 'path element at position 1 is not an integer: "a"'),
        ("jsonb_set('[1]', '{99999999999}', '2')", InvalidTextError, "path element at position 1 is not an integer"),
        ("jsonb_set('{\"a\":1}', ARRAY[NULL]::text[], '2')", InvalidValueError, "path element at position 1 is null"),
        ("jsonb_build_object(NULL, 1)", InvalidValueError, "argument 1: key must not be null"),
        ("jsonb_object('{a,b,c}')", InvalidValueError, "array must have even number of elements"),
        ("jsonb_object(ARRAY[NULL,'b'])", InvalidValueError, "null value not allowed for object key"),
        ("jsonb_object('{a}', '{b,c}')", InvalidValueError, "mismatched array dimensions"),
        ("'{\"a\":1}'::jsonb || 'no'", SqlTypeError, "invalid input syntax for type jsonb"),
        ("jsonb_build_object('a')", SqlTypeError, "a key lacks its value"),
        ("jsonb_build_object(ARRAY[1], 1)", SqlTypeError, "a key is a single value"),
        ("1 ? 'a'", SqlTypeError, "it takes jsonb on its left, not integer"),
        ("jsonb_extract_path('{}', 1)", SqlTypeError, "it takes character varying, not integer"),
    ],
)
def test_a_value_that_has_no_such_part_is_refused(session: Session, expression: str, error: type[SqlError], words: str) -> None:
    with pytest.raises(error, match=words):
        session.query(f"SELECT {expression}")


def test_a_value_that_is_nested_too_deep_is_refused(session: Session) -> None:
    fits, deep = ('{"a":' * depth + "1" + "}" * depth for depth in (100, 490))
    assert session.query(f"SELECT '{fits}'::jsonb > '{{}}'::jsonb").rows() == [(True,)]
    with pytest.raises(OutOfRangeError, match="nested too deep"):
        session.query(f"SELECT '{deep}'::jsonb < '{{}}'::jsonb")


def test_pairs_are_gathered_into_an_object_that_follows_their_changes() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, g int, k varchar, v int)")
        session.run("CREATE MATERIALIZED VIEW o AS SELECT g, jsonb_object_agg(k, v ORDER BY id) AS o FROM t GROUP BY g")
        session.run("CREATE MATERIALIZED VIEW f AS SELECT jsonb_object_agg(k, v) FILTER (WHERE k > 'a') AS o FROM t")
        session.run("INSERT INTO t VALUES (1, 1, 'b', 1), (2, 1, 'a', NULL), (3, 1, 'b', 3), (4, 2, 'a', 4)")
        session.run("FLUSH")
        assert session.query("SELECT * FROM o ORDER BY g").rows() == [(1, '{"a":null,"b":3}'), (2, '{"a":4}')]
        assert session.query("SELECT * FROM f").rows() == [('{"b":3}',)]
        session.run("DELETE FROM t WHERE id >= 3")
        session.run("FLUSH")
        assert session.query("SELECT * FROM o").rows() == [(1, '{"a":null,"b":1}')]
        assert session.query("SELECT * FROM f").rows() == [('{"b":1}',)]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("jsonb_object_agg(k, 1)", InvalidValueError, "field name must not be null"),
        ("jsonb_object_agg(DISTINCT k, 1)", SqlTypeError, "Take the pairs in a subquery with DISTINCT"),
        ("jsonb_object_agg(k)", SqlTypeError, "it takes 2 arguments, not 1"),
    ],
)
def test_pairs_that_make_no_object_are_refused(session: Session, call: str, error: type[SqlError], words: str) -> None:
    with pytest.raises(error, match=words):
        session.query(f"SELECT {call} FROM (VALUES ('a'), (NULL)) AS t(k)")

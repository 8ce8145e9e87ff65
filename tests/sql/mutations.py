"""Mutated statements: whatever a session is told, it refuses in its own words or runs, and goes on.

``python -m tests.sql.mutations --count 10000 --seed 1`` runs many; a part of them is among the tests.
"""

# ruff: noqa: E501 - statements are data

from __future__ import annotations

import argparse
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

from tests.sql import typed_calls
from tests.sql.typed_calls import FUNCTIONS
from windowpane.errors import SqlError, StaleViewError, WindowpaneError
from windowpane.sql import Session

SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, k int, v bigint, n numeric, d double precision, s text, b boolean);
CREATE TABLE m (at timestamp, z timestamptz, dt date, tm time, iv interval, j jsonb, a int[], by bytea, f real);
CREATE TABLE e (k int, v int, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '5 minutes') APPEND ONLY;
INSERT INTO t VALUES (1, 1, 10, 1.5, 0.5, 'one', true), (2, 1, 20, 2.5, -1, 'two', false), (3, 2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO m VALUES ('2024-01-01 10:00', '2024-01-01 10:00+02', '2024-01-01', '10:00', '1 day', '{"a": [1, 2]}', '{1,2}', '\\x01', 1),
    ('infinity', '-infinity', '10000-01-01', '23:59:59', '1 month', 'null', '{}', '\\x', -1), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO e VALUES (1, 1, '2024-01-01 10:00'), (1, 2, '2024-01-01 10:07'), (2, 3, '2024-01-01 10:30');
CREATE TABLE sane (x int); CREATE MATERIALIZED VIEW sane_count AS SELECT count(*) AS c FROM sane;
"""
"""What the statements below are about; ``sane`` shows that the session goes on."""

CORPUS = (
    "SELECT * FROM t WHERE k = 1 AND s LIKE 'o%' ORDER BY id LIMIT 2",
    "SELECT k, count(*), sum(v), avg(n), max(s), min(d) FROM t GROUP BY k HAVING count(*) > 0 ORDER BY k",
    "SELECT id, v / k, n * 2, d + 1.5, s || '!', NOT b, -v, v % 3 FROM t",
    "SELECT id, s::text, '12'::int, n::bigint, k::numeric(10, 2), '2024-01-01'::date, CAST(v AS smallint) FROM t",
    "SELECT CASE WHEN k = 1 THEN 'a' WHEN k > 1 THEN s ELSE NULL END, coalesce(v, 0), nullif(k, 1) FROM t",
    "SELECT at + iv, at - INTERVAL '1 hour', date_trunc('hour', at), extract(year FROM z), dt + 1, at - at FROM m",
    "SELECT to_char(at, 'YYYY-MM-DD'), z AT TIME ZONE 'UTC', tm + INTERVAL '1 minute', make_date(2024, 1, 1), iv * 2 FROM m",
    "SELECT j -> 'a', j ->> 'a', jsonb_typeof(j), a[1], a[1:2], array_length(a, 1), a || 3, by FROM m",
    "SELECT substring(s, 1, 2), upper(s), replace(s, 'o', '0'), split_part(s, 'w', 1), lpad(s, 5, '*'), length(s), chr(65) FROM t",
    "SELECT abs(v), round(n, 1), floor(d), ceil(d), sqrt(4), power(2, 3), ln(1.5), mod(k, 2), greatest(k, 2), sign(v) FROM t",
    "SELECT regexp_replace(s, 'o+', 'x'), s ~ '^o', position('w' IN s), trim(s), repeat(s, 2), concat(s, k, b), md5(s) FROM t",
    "SELECT row_number() OVER (PARTITION BY k ORDER BY id), lag(v, 1) OVER (ORDER BY id), sum(v) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t",
    "SELECT first_value(v) OVER w, ntile(2) OVER w, rank() OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY v DESC NULLS LAST)",
    "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10 minutes' PRECEDING AND CURRENT ROW) FROM e",
    "SELECT window_start, window_end, sum(v) FROM TUMBLE(e, ts, INTERVAL '10 minutes') GROUP BY window_start, window_end",
    "SELECT window_start, k, count(*) FROM HOP(e, ts, INTERVAL '5 minutes', INTERVAL '10 minutes') GROUP BY window_start, k",
    "SELECT window_start, count(*) FROM SESSION(TABLE e, DESCRIPTOR(ts), INTERVAL '5' MINUTE) GROUP BY window_start",
    "SELECT window_start, max(v) FROM CUMULATE(e, ts, INTERVAL '5 minutes', INTERVAL '1 hour') GROUP BY window_start, window_end",
    "SELECT t.id, u.v FROM t JOIN t AS u ON t.k = u.k AND t.id < u.id LEFT JOIN e ON e.k = t.k WHERE u.v IS NOT NULL",
    "SELECT id FROM t FULL JOIN e USING (k) UNION ALL SELECT k FROM e EXCEPT SELECT 7",
    "WITH c AS (SELECT k, max(v) AS best FROM t GROUP BY k) SELECT * FROM c WHERE best IN (SELECT v FROM t) OR k = 7",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM e WHERE e.k = t.k) AND v > (SELECT avg(v) FROM t) AND id BETWEEN 1 AND 3",
    "SELECT k, s, count(*), grouping(k) FROM t GROUP BY GROUPING SETS ((k), (s), ())",
    "SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id DESC OFFSET 0 FETCH FIRST 1 ROW ONLY",
    "SELECT count(DISTINCT k), string_agg(s, ',' ORDER BY id), array_agg(v), percentile_cont(0.5) WITHIN GROUP (ORDER BY d) FROM t",
    "SELECT sum(v) FILTER (WHERE b), bool_and(b), stddev(d), var_pop(n), arg_max(s, v), approx_count_distinct(k) FROM t",
    "SELECT * FROM unnest(ARRAY[1, 2, 3]) AS u(x), generate_series(1, 3) AS g(y) WHERE x = y",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS x(n, s) WHERE (n, s) IN ((1, 'a'), (3, 'c'))",
    "VALUES (1, 2), (3, 4)",
    "INSERT INTO t VALUES (4, 2, 40, 4.25, 1e3, 'four', true), (5, 2, 50, 5.75, -0.5, 'five', NULL)",
    "INSERT INTO t (id, s, n) SELECT id + 10, s, n FROM t WHERE id < 3",
    "INSERT INTO m VALUES ('2024-02-30', 'now', '2024-01-01', '24:00', '1 year', '[]', ARRAY[1, NULL], '\\xff', 'NaN')",
    "INSERT INTO e VALUES (3, 9, '2024-01-01 11:00:00'), (NULL, NULL, '2024-01-01 11:01')",
    "UPDATE t SET v = v + 1, s = upper(s) WHERE k IN (SELECT k FROM e) OR id = 2",
    "UPDATE t SET n = n * 1.1 WHERE CASE WHEN b THEN v > 10 ELSE false END",
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM e WHERE e.k = t.k) OR v IS NULL",
    "DELETE FROM m WHERE at < '2024-06-01' AND a = ARRAY[1, 2]",
    "CREATE TABLE made (id bigint PRIMARY KEY, w numeric(10, 2) NOT NULL DEFAULT 0, g int AS id::int % 7)",
    "CREATE TABLE c2 AS SELECT k, sum(v) AS total FROM t GROUP BY k",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS total, count(*) AS c FROM t GROUP BY k",
    "CREATE MATERIALIZED VIEW mv AS SELECT s::int AS n, 10 / (v - 10) AS q, at FROM t, m",
    "CREATE MATERIALIZED VIEW mv AS SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM t",
    "CREATE MATERIALIZED VIEW mv AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t) q WHERE r <= 2",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS before FROM e",
    "CREATE MATERIALIZED VIEW mv AS SELECT window_start, window_end, sum(v) AS s FROM TUMBLE(e, ts, INTERVAL '10 minutes') "
    "GROUP BY window_start, window_end EMIT ON WINDOW CLOSE",
    "CREATE MATERIALIZED VIEW mv AS SELECT t.id, e.v FROM t JOIN e ON t.k = e.k AND t.v::int > e.v",
    "CREATE MATERIALIZED VIEW mv AS SELECT at, z, dt, iv, j, a, by, f FROM m WHERE at > '2020-01-01'",
    "CREATE VIEW pv AS SELECT k AS kk FROM t",
    "CREATE SINK sk AS SELECT k, count(*) AS c FROM t GROUP BY k WITH (connector = 'blackhole')",
    "CREATE SINK sk2 FROM t WITH (connector = 'blackhole')",
    "CREATE INDEX ix ON t (k)",
    "ALTER TABLE t RENAME TO renamed",
    "DROP TABLE IF EXISTS nothing CASCADE",
    "DROP MATERIALIZED VIEW mv",
    "SHOW TABLES",
    "SHOW ERRORS",
    "SHOW CREATE TABLE t",
    "DESCRIBE m",
    "EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT k, count(*) FROM t GROUP BY k",
    "SET streaming_expr_strict_mode = true",
    "SET rw_implicit_flush = false",
    "FLUSH",
    "SELECT sum(n) / count(n), avg(n) OVER (PARTITION BY k ORDER BY id), n * n * n, round(n / 3, 5), trunc(n, -2), n % 0.7 FROM t",
    "SELECT ARRAY[ARRAY[1, 2], ARRAY[3, 4]], ARRAY[[1], [2]], '{{1,2},{3,4}}'::int[][], a[1][2], array_ndims(a), array_cat(a, a) FROM m",
    "SELECT array_to_string(a, ','), array_position(a, 1), array_remove(a, 2), 1 = ANY (a), 1 < ALL (a), unnest(a), array_sort(a) FROM m",
    "SELECT age(at), date_part('epoch', at), to_timestamp(1.5), to_date('2024-01-01', 'YYYY-MM-DD'), justify_hours(iv), dt - dt FROM m",
    "SELECT make_timestamp(2024, 1, 1, 0, 0, 0.5), make_time(1, 2, 3), at::date, at::time, z::text, iv::text, extract(epoch FROM iv) FROM m",
    "SELECT date_bin(INTERVAL '5 minutes', at, at), tumble_start(at, INTERVAL '1 hour'), timestampadd(DAY, 1, at), FLOOR(at TO HOUR) FROM m",
    "SELECT j #> '{a,0}', j #>> '{a}', jsonb_array_length(j), jsonb_array_elements(j), jsonb_object_keys(j), j = j, '[1]'::jsonb -> 0 FROM m",
    "SELECT decode('ff', 'hex'), encode(by, 'base64'), by || by, octet_length(by), s::bytea FROM m, t",
    "SELECT regexp_match(s, '(o)(n)'), regexp_matches(s, 'o', 'g'), regexp_split_to_array(s, ''), regexp_count(s, 'o'), overlay(s PLACING 'x' FROM 1) FROM t",
    "SELECT atan2(d, 1), degrees(d), cot(d), sinh(d), exp(n), log(2, n), cbrt(d), gcd(k, 4), k << 2, k & 1, k # 3, ~k, factorial(3) FROM t",
    "SELECT mode() WITHIN GROUP (ORDER BY v), percentile_disc(0.5) WITHIN GROUP (ORDER BY n), bit_xor(v), every(b), first_value(v ORDER BY id) FROM t",
    "SELECT (SELECT max(v) FROM t AS i WHERE i.k = o.k), l.x FROM t AS o, LATERAL (SELECT count(*) AS x FROM e WHERE e.k = o.k) AS l",
    "SELECT id, count(*) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE TIES), ntile(3) OVER (ORDER BY n) FROM t",
    "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY n DESC NULLS LAST) = 1",
    "SELECT k, TUMBLE_START(ts, INTERVAL '10' MINUTE), count(*) FROM e GROUP BY k, TUMBLE(ts, INTERVAL '10' MINUTE)",
    "SELECT generate_series(1, 5, 2), generate_series('2024-01-01'::timestamp, '2024-01-02', '6 hours') FROM t",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "SELECT * FROM t TABLESAMPLE BERNOULLI (10)",
    "SELECT * FROM t FOR UPDATE",
    "SELECT grouping(k, s), k, sum(v) FROM t GROUP BY ROLLUP (k, s)",
    "INSERT INTO t VALUES (1, 9, 9, 9, 9, 'again', true) RETURNING id, v",
    "INSERT INTO t DEFAULT VALUES",
    "UPDATE t SET (v, n) = (1, 2.5) FROM e WHERE e.k = t.k RETURNING t.*",
    "UPDATE t SET id = id + 10",
    "DELETE FROM t USING e WHERE e.k = t.k RETURNING *",
    "TRUNCATE TABLE t",
    "MERGE INTO t USING e ON t.k = e.k WHEN MATCHED THEN UPDATE SET v = 1",
    "COPY t FROM 'nothing.csv'",
    "CREATE TABLE nested (id int PRIMARY KEY, a int[][], r struct<x int, y text>, n numeric(28, 10), iv interval DEFAULT '1 day')",
    "CREATE TABLE late (at timestamptz, WATERMARK FOR at AS at - INTERVAL '1 day') APPEND ONLY WITH (retention_seconds = 5)",
    "CREATE TABLE IF NOT EXISTS t (id int)",
    "CREATE SOURCE src (k int, ts timestamp) WITH (connector = 'csv', path = '*.none')",
    "CREATE SOURCE gen (k int) WITH (connector = 'datagen', fields.k.kind = 'sequence')",
    "CREATE SINK filed FROM t WITH (connector = 'blackhole')",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, window_start, window_end, count(*) AS c FROM SESSION(e PARTITION BY (k), ts, INTERVAL '4 minutes') "
    "GROUP BY k, window_start, window_end EMIT ON WINDOW CLOSE",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, v, lag(v) OVER (PARTITION BY k ORDER BY ts) AS l, row_number() OVER (PARTITION BY k ORDER BY ts) AS r "
    "FROM e EMIT ON WINDOW CLOSE",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, v FROM e WHERE ts > now() - INTERVAL '1 hour'",
    "CREATE MATERIALIZED VIEW mv AS SELECT a[1] AS x, array_agg(j) AS js, count(DISTINCT iv) AS c FROM m GROUP BY a[1]",
    "CREATE MATERIALIZED VIEW mv AS SELECT t.n / u.n AS q, stddev(t.n) AS sd FROM t JOIN t AS u ON t.k = u.k GROUP BY t.n / u.n",
    "CREATE MATERIALIZED VIEW mv AS SELECT * FROM t FULL JOIN (SELECT k, avg(n) AS a FROM t GROUP BY k) AS q ON q.k = t.k ORDER BY id LIMIT 3",
    "CREATE UNIQUE INDEX IF NOT EXISTS ux ON t (k DESC, s) INCLUDE (v)",
    "CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql AS 'SELECT x'",
    "CREATE SCHEMA other",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE SUBSCRIPTION sub FROM sane_count WITH (retention = '1D')",
    "DECLARE cur SUBSCRIPTION CURSOR FOR sub FULL",
    "DECLARE cur CURSOR FOR SELECT * FROM t",
    "FETCH NEXT FROM cur",
    "FETCH 5 FROM cur",
    "CLOSE cur",
    "ALTER TABLE t ADD COLUMN x int",
    "ALTER TABLE t DROP COLUMN v",
    "ALTER TABLE t ALTER COLUMN v TYPE text",
    "ALTER MATERIALIZED VIEW sane_count RENAME TO counted",
    "ALTER SINK sk SET PARALLELISM = 4",
    "ALTER INDEX ix RENAME TO iy",
    "DROP TABLE t CASCADE",
    "DROP VIEW IF EXISTS pv RESTRICT",
    "DROP SINK sk",
    "DROP INDEX ix",
    "DROP SOURCE src",
    "SHOW COLUMNS FROM t",
    "SHOW CREATE MATERIALIZED VIEW sane_count",
    "SHOW INDEXES FROM t",
    "SHOW TIME ZONE",
    "SHOW ALL",
    "SHOW JOBS",
    "EXPLAIN SELECT * FROM t JOIN e ON t.k = e.k WHERE t.v > 1",
    "EXPLAIN (VERBOSE, FORMAT JSON) SELECT 1",
    "EXPLAIN ANALYZE SELECT count(*) FROM t",
    "SET TIME ZONE 'Europe/Zurich'",
    "SET timezone = 'Asia/Kathmandu'",
    "SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE",
    "RESET timezone",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "PREPARE p AS SELECT $1",
    "EXECUTE p(1)",
    "GRANT SELECT ON t TO me",
    "COMMENT ON TABLE t IS 'x'",
    "VACUUM",
    "PRAGMA database_list",
    "ATTACH 'x.db'",
    "INSTALL json",
    "CALL pragma_version()",
    "CHECKPOINT",
    "WAIT",
    "USE dev",
    "KILL 1",
)
VALUES = (
    "0", "-1", "1", "2", "NULL", "true", "2147483647", "-2147483648", "9223372036854775807", "9223372036854775808", "1e400",
    "1e-400", "1e40", "99999999999999999999999999999999999999", "0.00000000000000000000001", "'NaN'", "'infinity'", "'-infinity'",
    "''", "' '", "'{'", "'{1,{2}'", "'\\x'", "'\\xz'", "'10000-01-01'", "'0044-03-15 BC'", "'294276-12-31 23:59:59'", "'0000-00-00'",
    "'2024-01-01 10:00 -07:00'", "'é\U0001f600'", "'a\0b'", "'\ud800'", "'%'", "'('", "'1 year 999999999999 days'", "INTERVAL '1 day'",
    "INTERVAL '-9999999 years'", "timestamp 'infinity'", "date '0001-01-01'", "ARRAY[1, NULL]", "ARRAY[]::int[]", "'two'", "'1.5'",
    f"'{'x' * 3000}'", "_row_id", "_change_type", "*", "()", "$1", "?", "@", "now()", "'[1,2,3]'", "1.5", "-0.0", "'\\'",
    "'Infinity'::numeric", "'-inf'::real", "'NaN'::double precision", "'NaN'::numeric", "1e999999", "1e-999999", f"1{'0' * 400}", f"0.{'0' * 400}1",
    "0x7f", "1_000", "0b11", "'99999-12-31 23:59:59.999999'", "'294277-01-01'::timestamp", "'5874898-01-01'::date", "'4714-11-24 BC'::date",
    "'4713-01-01 00:00:00 BC'::timestamp", "'-0001-01-01'", "'+12024-01-01'", "'2024-01-01T10:00:00Z'", "'2024-01-01 10:00 Europe/Nowhere'",
    "'2024-01-01 10:00 +99:99'", "'epoch'", "'now'", "'today'", "'allballs'", "'12:00:61'", "'25:00'", "'24:00:00'", "'23:59:60'", "time '24:00'",
    "INTERVAL '178000000 years'", "INTERVAL '9223372036854775807 microseconds'", "INTERVAL '-9223372036854775808 microseconds'", "INTERVAL '0'",
    "INTERVAL '1.5 months'", "'P1Y2M3DT4H'::interval", "'infinity'::interval", "INTERVAL '1' YEAR TO MONTH", "INTERVAL '999999999999999999999 days'",
    "ARRAY[ARRAY[1], ARRAY[2, 3]]", "ARRAY[[1, 2], [3, NULL]]", "'{{1,2},{3}}'::int[]", "'{{{{}}}}'", "ARRAY[1, 'a']", "ARRAY[NULL]", "'{NULL,\"NULL\"}'::text[]",
    "ARRAY[ARRAY[ARRAY['x']]]", "'[2:3]={1,2}'::int[]", "(1, 2)", "ROW(1, 'a')", "ROW(NULL)", "MAP {'a': 1}", "{'a': 1}", "'{\"a\":{\"b\":[1,null]}}'::jsonb",
    "'{\"a\":1e400}'::jsonb", "'\"\\u0000\"'::jsonb", f"'{'[' * 2000}'::jsonb", f"'{'[' * 300}{']' * 300}'::jsonb", f"{'(' * 300}1{')' * 300}", f"{'-' * 99}1", f"{'NOT ' * 300}true",
    "'it''s'", "'\"'", "'`'", "E'\\n\\x00'", "$$x$$", "$a$'$a$", "/*", "--", ";", "'\ufeff'", "\ufeff", "\0", "chr(0)", "chr(-1)", "chr(1114112)", "'\u202eabc'", "'\r\n'",
    "'\ud83d'", '"\0"', '""', f'"{"n" * 5000}"', f"'{'é' * 100000}'", "repeat('x', 2147483647)", "repeat('ab', -1)", "lpad('', 2000000000, 'x')",
    "pg_sleep(1)", "random()", "version()", "current_user", "pg_typeof(1)", "nextval('x')", "read_csv('/etc/hostname')", "t", "t.*", "sane", "NULL::int[]", "DEFAULT", "1 ORDER BY 1", "(SELECT 1 WHERE false)", "(SELECT v FROM t)", "_row_id", "rowid", "tableoid", "xmin",
)  # fmt: skip
_OPERATORS = "+ - * / % ^ & | # << >> || = <> < <= > >= ~ ~* !~ -> ->> #> #>> @> ? AND OR IS LIKE ILIKE IN :: AT"
OPERATORS = tuple(_OPERATORS.split())
TYPES = (
    "int", "bigint", "smallint", "numeric", "numeric(5, 2)", "real", "double precision", "text", "boolean", "date", "time",
    "timestamp", "timestamptz", "interval", "jsonb", "bytea", "int[]", "text[]", "uuid", "nothing",
)  # fmt: skip
TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\w+|::|<>|<=|>=|\|\||->>|->|\S", re.DOTALL)
_TYPE = re.compile("|".join(re.escape(name) for name in sorted(TYPES, key=len, reverse=True)))
_IS_VALUE = re.compile(r"'.*'|\d.*", re.DOTALL)
SECONDS = 20.0
"""How long a statement may take; a mutation can ask for more rows than anybody has."""

Mutator = Callable[[random.Random, list[str]], None]


def _dropped(random: random.Random, tokens: list[str]) -> None:
    del tokens[random.randrange(len(tokens))]


def _doubled(random: random.Random, tokens: list[str]) -> None:
    at = random.randrange(len(tokens))
    tokens.insert(at, tokens[at])


def _swapped(random: random.Random, tokens: list[str]) -> None:
    one, other = random.randrange(len(tokens)), random.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _foreign(random: random.Random, tokens: list[str]) -> None:
    tokens[random.randrange(len(tokens))] = random.choice(TOKEN.findall(random.choice(CORPUS)))


def _valued(random: random.Random, tokens: list[str]) -> None:
    places = [index for index, token in enumerate(tokens) if _IS_VALUE.fullmatch(token)] or list(range(len(tokens)))
    tokens[random.choice(places)] = random.choice(VALUES)


def _any_valued(random: random.Random, tokens: list[str]) -> None:
    tokens[random.randrange(len(tokens))] = random.choice(VALUES)


def _typed(random: random.Random, tokens: list[str]) -> None:
    places = [index for index, token in enumerate(tokens) if _TYPE.fullmatch(token)]
    if places:
        tokens[random.choice(places)] = random.choice(TYPES)
    else:
        at = random.randrange(len(tokens))
        tokens[at] = f"{tokens[at]}::{random.choice(TYPES)}"


def _cut(random: random.Random, tokens: list[str]) -> None:
    del tokens[random.randrange(1, len(tokens) + 1) :]


def _spliced(random: random.Random, tokens: list[str]) -> None:
    other = TOKEN.findall(random.choice(CORPUS))
    at, start = random.randrange(len(tokens)), random.randrange(len(other))
    tokens[at:at] = other[start : start + random.randint(1, 6)]


def _called(random: random.Random, tokens: list[str]) -> None:
    """Call another function."""
    places = [index for index, token in enumerate(tokens[:-1]) if token.isidentifier() and tokens[index + 1] == "("]
    if places:
        tokens[random.choice(places)] = random.choice(FUNCTIONS)


def _with_other_operator(random: random.Random, tokens: list[str]) -> None:
    """Put another operator, or an operator and a value."""
    places = [index for index, token in enumerate(tokens) if token.upper() in OPERATORS]
    if places and random.random() < 0.6:
        tokens[random.choice(places)] = random.choice(OPERATORS)
    else:
        at = random.randrange(len(tokens)) + 1
        tokens[at:at] = [random.choice(OPERATORS), random.choice(VALUES)]


def _as_view(random: random.Random, tokens: list[str]) -> None:
    """Make a view of a query, or explain a statement."""
    if tokens[0].upper() in ("SELECT", "WITH", "VALUES"):
        name = f"of{random.randrange(10**6)}"
        words = [
            "CREATE MATERIALIZED VIEW {} AS",
            "CREATE VIEW {} AS",
            "CREATE TABLE {} AS",
            "EXPLAIN",
            "EXPLAIN CREATE MATERIALIZED VIEW {} AS",
        ]
        tokens[0:0] = random.choice([words[0], words[0], *words]).format(name).split()
        if random.random() < 0.2:
            tokens += ["EMIT", "ON", "WINDOW", "CLOSE"]
    else:
        tokens.insert(0, "EXPLAIN")


def _repeated(random: random.Random, tokens: list[str]) -> None:
    """Say a part many times."""
    start = random.randrange(len(tokens))
    end = start + random.randint(1, 4)
    tokens[start:end] = tokens[start:end] * random.choice((2, 5, 80))


def _followed(random: random.Random, tokens: list[str]) -> None:
    """Let another statement follow."""
    tokens += [";", *TOKEN.findall(random.choice(CORPUS))]


MUTATORS: tuple[Mutator, ...] = (
    _dropped, _doubled, _swapped, _foreign, _valued, _valued, _any_valued, _typed, _typed, _cut, _spliced,
    _called, _called, _with_other_operator, _as_view, _as_view, _repeated, _followed,
)  # fmt: skip


def mutated(random: random.Random, statement: str) -> str:
    """Return a statement with one or two changes."""
    tokens = TOKEN.findall(statement)
    for _ in range(random.choice((1, 1, 1, 2))):
        if tokens:
            random.choice(MUTATORS)(random, tokens)
    return " ".join(tokens)


@dataclass
class Outcome:
    """What became of statements: how many by kind, and those that crashed."""

    counts: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)


def statements(seed: int, count: int) -> Iterator[str]:
    """Yield mutated statements; one in ten stays as it is, so that there is something to go wrong with."""
    source = random.Random(seed)
    for _ in range(count):
        statement, what = source.choice(CORPUS), source.random()
        yield statement if what < 0.1 else typed_calls.statement(source, VALUES) if what < 0.4 else mutated(source, statement)


def run(seed: int, count: int, each: int = 50) -> Outcome:
    """Run mutated statements, a new session for every ``each`` of them; none may crash, and the session goes on after each."""
    with TemporaryDirectory() as folder, chdir(folder):  # a mutation can name any file
        return _outcome(seed, count, each)


def _outcome(seed: int, count: int, each: int) -> Outcome:
    outcome, session = Outcome(), None
    for index, statement in enumerate(statements(seed, count)):
        if index % each == 0:
            if session is not None:
                session.close()
            session = Session(":memory:")
            session._storage.run("SET memory_limit = '700MB'")
            session._storage.run("SET threads = 1")
            session.run(SET_UP)
        assert session is not None
        refused = outcome.counts["refused"]
        crash = _kind(session, statement, outcome)
        if crash is None and _is_sane(session):
            crash = _goes_on(session, changes=outcome.counts["refused"] == refused)
        if crash is not None:
            outcome.crashes.append(f"{_shortened(statement)!r}: {_shortened(crash)}")
            outcome.counts["crash"] += 1
    if session is not None:
        session.close()
    return outcome


def _shortened(text: str) -> str:
    return text if len(text) < 2000 else f"{text[:1000]} ... {text[-600:]}"


def _kind(session: Session, statement: str, outcome: Outcome) -> str | None:
    """Run a statement, count its kind, and return what crashed."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        session._storage._connection.interrupt()

    timer = threading.Timer(SECONDS, stop)
    timer.start()
    start = time.monotonic()
    try:
        for result in session.run(statement):
            result.rows(), result.text_rows(), result.dicts()
        outcome.counts["ran"] += 1
    except StaleViewError as error:
        outcome.counts["stale view"] += 1
        if "please report" in str(error):
            return str(error)
    except WindowpaneError as error:
        if type(error).__name__ == "UnexpectedError" and not stopped.is_set():
            return str(error)
        outcome.counts["too long" if stopped.is_set() else "refused" if isinstance(error, SqlError) else "failed"] += 1
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        timer.cancel()
    if time.monotonic() - start > SECONDS:
        outcome.counts["slow"] += 1
    return None


def _is_sane(session: Session) -> bool:
    """Whether the mutations have left the table and view that show it."""
    return {"sane", "sane_count"} <= set(session.relations())


def _goes_on(session: Session, *, changes: bool) -> str | None:
    """Return what is wrong with a session that should go on: after a statement that ran, with changes and a flush."""
    try:
        try:
            session.run("INSERT INTO sane VALUES (1); FLUSH" if changes else "")
        except StaleViewError as error:
            if "please report" in str(error) or "sane" in error.failures:
                return str(error)
        rows = session.query("SELECT c FROM sane_count").rows()
        counted = session.query("SELECT count(*) FROM sane").rows()
    except BaseException as error:
        return f"the session is broken: {type(error).__name__}: {error}"
    return None if rows == counted or not changes else f"sane_count is {rows}, not {counted}"


def main() -> None:
    """Run mutations from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcome = run(arguments.seed, arguments.count)
    for crash in outcome.crashes:
        print(ascii(crash))
    print(f"seed {arguments.seed}: {dict(outcome.counts)}")
    print(f"{arguments.count - len(outcome.crashes)} passed, {len(outcome.crashes)} failed")
    raise SystemExit(1 if outcome.crashes else 0)


if __name__ == "__main__":
    main()

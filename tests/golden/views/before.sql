CREATE TABLE a (k int, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '30 seconds') APPEND ONLY;
CREATE TABLE b (k int, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '30 seconds') APPEND ONLY;
CREATE TABLE t (id int PRIMARY KEY, k int, at timestamp, v int, m numeric(10, 2), d double precision, s text, flag boolean, tags text[], j jsonb);
CREATE TABLE names (k int, name text, least int);
INSERT INTO names VALUES (1, 'one', 3), (2, 'two', 9), (2, 'deux', 1);
CREATE MATERIALIZED VIEW filtered AS SELECT id, k, m * 2 AS twice, coalesce(s, '-') AS s FROM t WHERE v > 10;
CREATE MATERIALIZED VIEW groups AS SELECT k, count(*) AS n, sum(v) AS total, avg(m) AS mean, min(s) AS least, max(d) AS most, bool_or(flag) AS any FROM t GROUP BY k;
CREATE MATERIALIZED VIEW groups_of_all AS SELECT count(*) AS n, sum(m) AS total, stddev_samp(v) AS spread FROM t;
CREATE MATERIALIZED VIEW lists AS SELECT k, array_agg(v ORDER BY id) AS l, count(DISTINCT s) AS c, string_agg(s, ',' ORDER BY id) AS s FROM t GROUP BY k;
CREATE MATERIALIZED VIEW sets AS SELECT k, s, count(*) AS n, grouping(k) AS g FROM t GROUP BY GROUPING SETS ((k, s), (k), ());
CREATE MATERIALIZED VIEW different AS SELECT DISTINCT k, s FROM t;
CREATE MATERIALIZED VIEW united AS SELECT k, s FROM t UNION SELECT k, name FROM names;
CREATE MATERIALIZED VIEW all_of_both AS SELECT id, k FROM t UNION ALL SELECT v, k FROM a;
CREATE MATERIALIZED VIEW top AS SELECT id, k, v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) <= 2;
CREATE MATERIALIZED VIEW ranked AS SELECT id, k, v FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t) AS q WHERE r <= 2;
CREATE MATERIALIZED VIEW limited AS SELECT id, v FROM t ORDER BY v DESC NULLS LAST, id LIMIT 5;
CREATE MATERIALIZED VIEW over_rows AS SELECT id, k, lag(v) OVER w AS before, sum(v) OVER (PARTITION BY k ORDER BY at, id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS near, rank() OVER w AS place FROM t WINDOW w AS (PARTITION BY k ORDER BY at, id);
CREATE MATERIALIZED VIEW over_range AS SELECT id, k, count(*) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL '20 seconds' PRECEDING AND CURRENT ROW) AS n, ntile(3) OVER (PARTITION BY k ORDER BY v, id) AS third FROM t;
CREATE MATERIALIZED VIEW joined AS SELECT t.id, t.k, names.name FROM t JOIN names ON t.k = names.k;
CREATE MATERIALIZED VIEW left_joined AS SELECT t.id, names.name FROM t LEFT JOIN names ON t.k = names.k AND t.v > names.least;
CREATE MATERIALIZED VIEW full_joined AS SELECT g.k, g.n, names.name FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS g FULL JOIN names ON g.k = names.k;
CREATE MATERIALIZED VIEW compared AS SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM t);
CREATE MATERIALIZED VIEW existing AS SELECT id FROM t WHERE EXISTS (SELECT 1 FROM names WHERE names.k = t.k AND names.least < t.v);
CREATE MATERIALIZED VIEW missing AS SELECT id FROM t WHERE k NOT IN (SELECT k FROM names WHERE k IS NOT NULL);
CREATE MATERIALIZED VIEW unnested AS SELECT t.id, u.tag, u.n FROM t, UNNEST(t.tags) WITH ORDINALITY AS u(tag, n);
CREATE MATERIALIZED VIEW view_of_view AS SELECT total, count(*) AS ks FROM groups GROUP BY total;
CREATE MATERIALIZED VIEW documents AS SELECT id, j->>'a' AS a, j FROM t WHERE j IS NOT NULL;
CREATE MATERIALIZED VIEW bad_values AS SELECT id, CAST(s AS int) AS number FROM t;
CREATE MATERIALIZED VIEW folded AS SELECT window_start, k, sum(v) AS s FROM tumble(a, at, INTERVAL '1 minute') GROUP BY window_start, k;
CREATE MATERIALIZED VIEW recomputed AS SELECT window_start, window_end, array_agg(v ORDER BY v) AS s FROM hop(a, at, INTERVAL '1 minute', INTERVAL '3 minutes') GROUP BY window_start, window_end;
CREATE MATERIALIZED VIEW steps AS SELECT window_start, window_end, array_agg(v ORDER BY v) AS s FROM cumulate(a, at, INTERVAL '1 minute', INTERVAL '3 minutes') GROUP BY window_start, window_end;
CREATE MATERIALIZED VIEW groups_of_groups AS SELECT window_start, max(n) AS m, array_agg(n ORDER BY n) AS s FROM (SELECT window_start, k, count(*) AS n FROM tumble(a, at, INTERVAL '1 minute') GROUP BY window_start, k) AS q GROUP BY window_start;
CREATE MATERIALIZED VIEW distinct_keys AS SELECT DISTINCT window_start, k FROM tumble(a, at, INTERVAL '1 minute');
CREATE MATERIALIZED VIEW top_n AS SELECT k, v, at, window_start FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY v DESC, k, at) AS n FROM tumble(a, at, INTERVAL '1 minute')) AS q WHERE n <= 2;
CREATE MATERIALIZED VIEW top_n_of_groups AS SELECT k, s, window_start FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY s, k) AS n FROM (SELECT window_start, k, sum(v) AS s FROM tumble(a, at, INTERVAL '1 minute') GROUP BY window_start, k) AS g) AS q WHERE n <= 2;
CREATE MATERIALIZED VIEW deduplicated AS SELECT k, v, at FROM (SELECT *, row_number() OVER (PARTITION BY window_start, k ORDER BY at DESC, v) AS n FROM tumble(a, at, INTERVAL '1 minute')) AS q WHERE n = 1;
CREATE MATERIALIZED VIEW sessions AS SELECT k, v, at, window_start, window_end FROM session(TABLE a PARTITION BY k, DESCRIPTOR(at), INTERVAL '20 seconds');
CREATE MATERIALIZED VIEW groups_of_sessions AS SELECT window_start, window_end, count(*) AS n FROM session(TABLE a, DESCRIPTOR(at), INTERVAL '5 seconds') GROUP BY window_start, window_end;
CREATE MATERIALIZED VIEW intersection AS SELECT window_start, k FROM tumble(a, at, INTERVAL '1 minute') INTERSECT SELECT window_start, k FROM tumble(b, at, INTERVAL '1 minute');
CREATE MATERIALIZED VIEW exception AS SELECT window_start, k FROM tumble(a, at, INTERVAL '1 minute') EXCEPT SELECT window_start, k FROM tumble(b, at, INTERVAL '1 minute');
CREATE MATERIALIZED VIEW with_partner AS SELECT k, v, at FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.at BETWEEN a.at AND a.at + INTERVAL '30 seconds');
CREATE MATERIALIZED VIEW without_partner AS SELECT * FROM (SELECT * FROM tumble(a, at, INTERVAL '1 minute')) AS l WHERE NOT EXISTS (SELECT 1 FROM (SELECT * FROM tumble(b, at, INTERVAL '1 minute')) AS r WHERE r.window_start = l.window_start AND r.k = l.k);
CREATE MATERIALIZED VIEW union_of_both AS SELECT window_start, array_agg(k ORDER BY k) AS s FROM (SELECT window_start, k FROM tumble(a, at, INTERVAL '1 minute') UNION ALL SELECT window_start, k FROM tumble(b, at, INTERVAL '1 minute')) AS q GROUP BY window_start;
CREATE MATERIALIZED VIEW window_join_inner AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM tumble(a, at, INTERVAL '1 minute') AS l INNER JOIN tumble(b, at, INTERVAL '1 minute') AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
CREATE MATERIALIZED VIEW interval_join_inner AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l INNER JOIN b AS r ON l.k = r.k AND l.at BETWEEN r.at - INTERVAL '20 seconds' AND r.at + INTERVAL '40 seconds';
CREATE MATERIALIZED VIEW interval_join_with_more_inner AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l INNER JOIN b AS r ON l.k = r.k AND r.at <= l.at + INTERVAL '20 seconds' AND r.at > l.at AND l.v <> r.v;
CREATE MATERIALIZED VIEW window_join_left AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM tumble(a, at, INTERVAL '1 minute') AS l LEFT JOIN tumble(b, at, INTERVAL '1 minute') AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
CREATE MATERIALIZED VIEW interval_join_left AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l LEFT JOIN b AS r ON l.k = r.k AND l.at BETWEEN r.at - INTERVAL '20 seconds' AND r.at + INTERVAL '40 seconds';
CREATE MATERIALIZED VIEW interval_join_with_more_left AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l LEFT JOIN b AS r ON l.k = r.k AND r.at <= l.at + INTERVAL '20 seconds' AND r.at > l.at AND l.v <> r.v;
CREATE MATERIALIZED VIEW window_join_right AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM tumble(a, at, INTERVAL '1 minute') AS l RIGHT JOIN tumble(b, at, INTERVAL '1 minute') AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
CREATE MATERIALIZED VIEW interval_join_right AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l RIGHT JOIN b AS r ON l.k = r.k AND l.at BETWEEN r.at - INTERVAL '20 seconds' AND r.at + INTERVAL '40 seconds';
CREATE MATERIALIZED VIEW interval_join_with_more_right AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l RIGHT JOIN b AS r ON l.k = r.k AND r.at <= l.at + INTERVAL '20 seconds' AND r.at > l.at AND l.v <> r.v;
CREATE MATERIALIZED VIEW window_join_full AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM tumble(a, at, INTERVAL '1 minute') AS l FULL JOIN tumble(b, at, INTERVAL '1 minute') AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
CREATE MATERIALIZED VIEW interval_join_full AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l FULL JOIN b AS r ON l.k = r.k AND l.at BETWEEN r.at - INTERVAL '20 seconds' AND r.at + INTERVAL '40 seconds';
CREATE MATERIALIZED VIEW interval_join_with_more_full AS SELECT l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra FROM a AS l FULL JOIN b AS r ON l.k = r.k AND r.at <= l.at + INTERVAL '20 seconds' AND r.at > l.at AND l.v <> r.v;
CREATE MATERIALIZED VIEW folded_closed AS SELECT window_start, k, sum(v) AS s FROM tumble(a, at, INTERVAL '1 minute') GROUP BY window_start, k EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW recomputed_closed AS SELECT window_start, window_end, array_agg(v ORDER BY v) AS s FROM hop(a, at, INTERVAL '1 minute', INTERVAL '3 minutes') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW steps_closed AS SELECT window_start, window_end, array_agg(v ORDER BY v) AS s FROM cumulate(a, at, INTERVAL '1 minute', INTERVAL '3 minutes') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW sessions_closed AS SELECT window_start, window_end, count(*) AS n FROM session(TABLE a, DESCRIPTOR(at), INTERVAL '5 seconds') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW over_closed AS SELECT k, at, v, lag(v) OVER w AS before, sum(v) OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near FROM a WINDOW w AS (PARTITION BY k ORDER BY at) EMIT ON WINDOW CLOSE;
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '0 seconds', 4), (1, timestamp '2024-01-01' + INTERVAL '0 seconds', 4), (2, timestamp '2024-01-01' + INTERVAL '0 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '0 seconds', 3), (0, timestamp '2024-01-01' + INTERVAL '23 seconds', 1), (2, timestamp '2024-01-01' + INTERVAL '0 seconds', 3);
INSERT INTO t VALUES
(1, 2, '2024-01-01 00:03:48', NULL, -51.02, NULL, NULL, NULL, ARRAY['q','r'], '{"a": [2]}'),
(2, NULL, '2024-01-01 00:01:58', 16, NULL, NULL, '7', NULL, ARRAY['p', NULL], NULL),
(3, NULL, '2024-01-01 00:03:35', 1, NULL, NULL, 'Ä', true, ARRAY['q','r'], '{"a": [2]}'),
(4, 1, '2024-01-01 00:00:47', NULL, NULL, NULL, '7', true, ARRAY['q','r'], '{"a": [2]}'),
(5, NULL, '2024-01-01 00:03:54', 12, 56.97, NULL, NULL, NULL, NULL, '{"a": 1}'),
(6, 3, '2024-01-01 00:02:39', 18, -95.91, -4.393389859363582, NULL, NULL, NULL, '{"a": [2]}'),
(7, NULL, '2024-01-01 00:02:45', NULL, 52.27, NULL, '', true, ARRAY['p', NULL], NULL),
(8, NULL, '2024-01-01 00:00:18', 14, 66.01, 4.939669614185187, '7', true, NULL, '{"a": [2]}');
UPDATE t SET v = 2, k = 1 WHERE id = 5;
DELETE FROM t WHERE id = 6;
UPDATE t SET v = 4, k = 3 WHERE id = 8;
DELETE FROM t WHERE id = 7;
FLUSH;
INSERT INTO b VALUES (NULL, timestamp '2024-01-01' + INTERVAL '50 seconds', 4), (2, timestamp '2024-01-01' + INTERVAL '0 seconds', 4);
INSERT INTO a VALUES (2, timestamp '2024-01-01' + INTERVAL '0 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '7 seconds', 1);
INSERT INTO a VALUES (NULL, timestamp '2024-01-01' + INTERVAL '241 seconds', 1), (2, timestamp '2024-01-01' + INTERVAL '183 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '251 seconds', 2);
FLUSH;
INSERT INTO a VALUES (2, timestamp '2024-01-01' + INTERVAL '177 seconds', 1), (NULL, timestamp '2024-01-01' + INTERVAL '233 seconds', 4), (1, timestamp '2024-01-01' + INTERVAL '224 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '244 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '208 seconds', 1);
INSERT INTO b VALUES (2, timestamp '2024-01-01' + INTERVAL '208 seconds', 3), (NULL, timestamp '2024-01-01' + INTERVAL '213 seconds', 3), (2, timestamp '2024-01-01' + INTERVAL '206 seconds', 0), (2, timestamp '2024-01-01' + INTERVAL '185 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '191 seconds', 1);
INSERT INTO b VALUES (0, timestamp '2024-01-01' + INTERVAL '315 seconds', 4);
INSERT INTO names VALUES (3, 'three', 5), (NULL, 'none', 0);
FLUSH;
INSERT INTO b VALUES (2, timestamp '2024-01-01' + INTERVAL '313 seconds', 3), (0, timestamp '2024-01-01' + INTERVAL '258 seconds', 2), (NULL, timestamp '2024-01-01' + INTERVAL '310 seconds', 5), (0, timestamp '2024-01-01' + INTERVAL '258 seconds', 5), (1, timestamp '2024-01-01' + INTERVAL '339 seconds', 5);
INSERT INTO b VALUES (NULL, timestamp '2024-01-01' + INTERVAL '319 seconds', 2), (1, timestamp '2024-01-01' + INTERVAL '272 seconds', 2), (2, timestamp '2024-01-01' + INTERVAL '291 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '333 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '368 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '364 seconds', 3);
INSERT INTO t VALUES
(31, 3, '2024-01-01 00:00:45', 11, 63.15, NULL, NULL, false, ARRAY['q','r'], '{"a": 1}'),
(32, NULL, '2024-01-01 00:02:46', NULL, 12.71, -1.8392195462503027, NULL, false, ARRAY['p', NULL], '{"a": 1}'),
(33, 1, '2024-01-01 00:01:45', NULL, -17.02, -4.350226492218719, '', true, ARRAY['p', NULL], '{"a": 1}'),
(34, 3, '2024-01-01 00:00:17', 3, NULL, -2.506752835881815, 'Ä', NULL, ARRAY['p', NULL], NULL),
(35, 3, '2024-01-01 00:03:56', NULL, NULL, NULL, 'Ä', false, ARRAY['q','r'], NULL),
(36, 3, '2024-01-01 00:03:03', 29, -44.04, -0.8513334882510568, 'x', false, ARRAY['q','r'], '{"a": [2]}'),
(37, 3, '2024-01-01 00:03:41', NULL, 58.33, NULL, NULL, true, ARRAY['q','r'], '{"a": 1}'),
(38, 2, '2024-01-01 00:03:58', NULL, NULL, NULL, NULL, true, ARRAY['p', NULL], '{"a": [2]}');
UPDATE t SET v = 2, k = 2 WHERE id = 4;
DELETE FROM t WHERE id = 8;
UPDATE t SET v = 8, k = 3 WHERE id = 4;
DELETE FROM t WHERE id = 1;
FLUSH;
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '327 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '305 seconds', 3);
INSERT INTO a VALUES (1, timestamp '2024-01-01' + INTERVAL '417 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '349 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '349 seconds', 5);
DELETE FROM names WHERE k = 2;
FLUSH;
INSERT INTO a VALUES (1, timestamp '2024-01-01' + INTERVAL '413 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '390 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '458 seconds', 4), (1, timestamp '2024-01-01' + INTERVAL '462 seconds', 1), (2, timestamp '2024-01-01' + INTERVAL '478 seconds', 4);
FLUSH;
INSERT INTO a VALUES (1, timestamp '2024-01-01' + INTERVAL '160 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '123 seconds', 5), (0, timestamp '2024-01-01' + INTERVAL '161 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '118 seconds', 3);
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '186 seconds', 0), (2, timestamp '2024-01-01' + INTERVAL '110 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '178 seconds', 2);
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '188 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '191 seconds', 2);
INSERT INTO t VALUES
(61, NULL, '2024-01-01 00:03:26', 23, 23.50, NULL, 'Ä', false, ARRAY['q','r'], '{"a": 1}'),
(62, 2, '2024-01-01 00:01:05', 8, 26.02, 1.45791712744969, 'x', true, NULL, NULL),
(63, NULL, '2024-01-01 00:03:37', 15, -76.03, 4.302385071428661, 'Ä', true, NULL, NULL),
(64, 2, '2024-01-01 00:01:33', 21, NULL, NULL, NULL, true, NULL, '{"a": [2]}'),
(65, 1, '2024-01-01 00:02:08', NULL, 73.10, NULL, NULL, true, ARRAY['p', NULL], '{"a": [2]}'),
(66, 2, '2024-01-01 00:03:16', 7, -96.57, 4.9637405172504945, 'x', NULL, NULL, '{"a": 1}'),
(67, 2, '2024-01-01 00:01:01', NULL, NULL, -3.058847747869027, NULL, false, NULL, '{"a": [2]}'),
(68, NULL, '2024-01-01 00:02:14', 15, 10.78, -1.3768010823006427, '7', true, ARRAY['p', NULL], '{"a": [2]}');
UPDATE t SET v = 27, k = 3 WHERE id = 4;
DELETE FROM t WHERE id = 33;
UPDATE t SET v = 15, k = 1 WHERE id = 37;
DELETE FROM t WHERE id = 34;
FLUSH;
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '172 seconds', 3);
INSERT INTO b VALUES (0, timestamp '2024-01-01' + INTERVAL '148 seconds', 5);
FLUSH;
INSERT INTO b VALUES (0, timestamp '2024-01-01' + INTERVAL '238 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '152 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '196 seconds', 5), (0, timestamp '2024-01-01' + INTERVAL '219 seconds', 4);
INSERT INTO a VALUES (2, timestamp '2024-01-01' + INTERVAL '183 seconds', 2), (1, timestamp '2024-01-01' + INTERVAL '171 seconds', 1), (2, timestamp '2024-01-01' + INTERVAL '218 seconds', 4), (NULL, timestamp '2024-01-01' + INTERVAL '192 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '228 seconds', 1), (NULL, timestamp '2024-01-01' + INTERVAL '201 seconds', 1);
INSERT INTO b VALUES (NULL, timestamp '2024-01-01' + INTERVAL '395 seconds', 0), (1, timestamp '2024-01-01' + INTERVAL '353 seconds', 3), (0, timestamp '2024-01-01' + INTERVAL '383 seconds', 5), (1, timestamp '2024-01-01' + INTERVAL '427 seconds', 3);
FLUSH;
INSERT INTO b VALUES (0, timestamp '2024-01-01' + INTERVAL '363 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '375 seconds', 1);
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '550 seconds', 5), (NULL, timestamp '2024-01-01' + INTERVAL '594 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '634 seconds', 3), (NULL, timestamp '2024-01-01' + INTERVAL '650 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '611 seconds', 3);
INSERT INTO t VALUES
(91, 2, '2024-01-01 00:03:14', NULL, -64.28, NULL, 'Ä', false, ARRAY['q','r'], NULL),
(92, 2, '2024-01-01 00:03:03', 6, NULL, NULL, '7', false, ARRAY['p', NULL], '{"a": [2]}'),
(93, 3, '2024-01-01 00:00:05', 29, NULL, -3.144878100419921, NULL, false, ARRAY['q','r'], '{"a": [2]}'),
(94, NULL, '2024-01-01 00:02:21', 14, NULL, NULL, 'x', false, NULL, '{"a": [2]}'),
(95, 2, '2024-01-01 00:03:22', NULL, NULL, -4.507426641489828, '7', false, ARRAY['q','r'], '{"a": 1}'),
(96, 2, '2024-01-01 00:02:23', NULL, -90.07, -2.5198695203792667, NULL, false, NULL, '{"a": 1}'),
(97, 1, '2024-01-01 00:00:16', 6, 98.45, -1.3702571189169097, '', true, ARRAY['p', NULL], '{"a": [2]}'),
(98, 3, '2024-01-01 00:02:19', 0, NULL, -3.9273862931736527, 'Ä', false, ARRAY['p', NULL], '{"a": 1}');
UPDATE t SET v = 4, k = 2 WHERE id = 32;
DELETE FROM t WHERE id = 2;
UPDATE t SET v = 25, k = 3 WHERE id = 61;
DELETE FROM t WHERE id = 96;
FLUSH;

CREATE SOURCE trades (k int, name text, v int, at timestamp, WATERMARK FOR at AS at - INTERVAL '2 minutes')
    WITH (connector = 'parquet', path = '@FOLDER@/in', maxFilesPerTrigger = '1');
CREATE MATERIALIZED VIEW best AS
    SELECT * FROM (
        SELECT t.k, t.name, t.v, t.at, o.n, row_number() OVER (PARTITION BY o.k ORDER BY t.at DESC NULLS LAST, t.v, t.name) AS place
        FROM trades t JOIN (SELECT k, count(*) AS n FROM trades GROUP BY k) AS o ON t.k = o.k) AS p
    WHERE place <= 3;
CREATE MATERIALIZED VIEW shares AS
    SELECT a.v, a.n, b.s, b.different FROM (SELECT v, count(*) AS n FROM trades GROUP BY v) AS a
    LEFT JOIN (SELECT v, sum(k) AS s, count(DISTINCT name) AS different FROM trades WHERE name <> '' GROUP BY v) AS b ON a.v = b.v;
CREATE MATERIALIZED VIEW earlier AS
    SELECT k, at, n, lag(n) OVER (PARTITION BY k, at ORDER BY n) AS before FROM
    (SELECT k, at, v, count(*) AS n FROM trades WHERE at IS NOT NULL GROUP BY k, at, v) AS c;
CREATE MATERIALIZED VIEW most AS
    SELECT k, at, max(n) AS n, max(lasts) AS lasts FROM
    (SELECT k, at, max(v) AS lasts, count(*) AS n FROM trades GROUP BY k, at) AS c GROUP BY k, at;

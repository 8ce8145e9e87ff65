CREATE SOURCE trades (k int, name text, v int, at timestamp, WATERMARK FOR at AS at - INTERVAL '2 minutes')
    WITH (connector = 'parquet', path = '@FOLDER@/in', maxFilesPerTrigger = '1');
CREATE MATERIALIZED VIEW closed AS
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY s DESC, k, name) AS place FROM (
            SELECT k, name, window_start, window_end, sum(v) AS s FROM tumble(trades, at, INTERVAL '1 minute')
            WHERE at IS NOT NULL GROUP BY k, name, window_start, window_end) AS g) AS p
    WHERE place <= 3 EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW leading AS
    SELECT * FROM (
        SELECT *, dense_rank() OVER (PARTITION BY window_end ORDER BY s) AS place FROM (
            SELECT k, name, window_end, max(v) AS s, count(*) AS n
            FROM hop(trades, at, INTERVAL '1 minute', INTERVAL '3 minutes')
            WHERE at IS NOT NULL GROUP BY k, name, window_start, window_end) AS g) AS p
    WHERE place <= 2;
CREATE MATERIALIZED VIEW counts AS SELECT k, v, count(*) AS n, sum(v) AS s, max(name) AS last FROM trades GROUP BY k, v;
CREATE MATERIALIZED VIEW named AS
    SELECT t.k, t.name, t.at, c.last, c.n FROM trades t LEFT JOIN counts c ON t.v = c.n WHERE t.name <> '';
CREATE MATERIALIZED VIEW different AS
    SELECT name, count(DISTINCT v) AS n, count(DISTINCT v) FILTER (WHERE k = 1) AS first, sum(DISTINCT k) AS s,
        count(DISTINCT at) AS times, count(*) AS rows FROM trades GROUP BY name;
CREATE MATERIALIZED VIEW shares AS
    SELECT a.v, a.n, b.s, b.different FROM (SELECT v, count(*) AS n FROM trades GROUP BY v) AS a
    LEFT JOIN (SELECT v, sum(k) AS s, count(DISTINCT name) AS different FROM trades WHERE name <> '' GROUP BY v) AS b ON a.v = b.v;
CREATE MATERIALIZED VIEW addresses AS
    SELECT 'https://prices.example.com/' || repeat('of/', 12) || coalesce(name, 'none') AS address, min(v) AS least, count(*) AS n
    FROM trades GROUP BY 1;
CREATE MATERIALIZED VIEW best AS
    SELECT * FROM (
        SELECT t.k, t.name, t.v, t.at, o.n, row_number() OVER (PARTITION BY t.name ORDER BY t.v DESC NULLS LAST, t.at, t.k) AS place
        FROM trades t LEFT JOIN (SELECT name, count(*) AS n FROM trades GROUP BY name) AS o ON t.name = o.name) AS p
    WHERE place <= 3;
CREATE MATERIALIZED VIEW before AS
    SELECT name, v, at, lag(v) OVER (PARTITION BY name ORDER BY at, v, k) AS earlier FROM trades WHERE at IS NOT NULL;

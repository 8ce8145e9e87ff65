CREATE SOURCE trades (k int, name text, v int, at timestamp, WATERMARK FOR at AS at - INTERVAL '2 minutes')
    WITH (connector = 'parquet', path = '@FOLDER@/in', maxFilesPerTrigger = '1');
CREATE MATERIALIZED VIEW counts AS SELECT k, v, count(*) AS n, sum(v) AS s, max(name) AS last FROM trades GROUP BY k, v;
CREATE MATERIALIZED VIEW counts_of_times AS SELECT name, at, count(*) AS n, count(*) FILTER (WHERE v > 1) AS high FROM trades GROUP BY name, at;
CREATE MATERIALIZED VIEW named AS
    SELECT t.k, t.name, t.at, c.last, c.n FROM trades t LEFT JOIN counts c ON t.v = c.n WHERE t.name <> '';
CREATE MATERIALIZED VIEW latest AS
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY k ORDER BY at DESC NULLS LAST, v, name) AS place FROM trades) AS p
    WHERE place <= 3;
CREATE MATERIALIZED VIEW different AS
    SELECT name, count(DISTINCT v) AS n, count(DISTINCT v) FILTER (WHERE k = 1) AS first, sum(DISTINCT k) AS s,
        count(DISTINCT at) AS times, count(*) AS rows FROM trades GROUP BY name;
CREATE MATERIALIZED VIEW different_of_minutes AS
    SELECT window_start, count(DISTINCT v) AS n, count(DISTINCT name) FILTER (WHERE v > 0) AS names
    FROM tumble(trades, at, INTERVAL '1 minute') WHERE at IS NOT NULL GROUP BY window_start;
CREATE MATERIALIZED VIEW different_counts AS
    SELECT k, count(DISTINCT n) AS n, avg(DISTINCT s) AS mean, max(DISTINCT last) AS last FROM counts GROUP BY k;

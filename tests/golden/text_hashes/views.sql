CREATE SOURCE trades (k int, name text, v int, at timestamp, WATERMARK FOR at AS at - INTERVAL '2 minutes')
    WITH (connector = 'parquet', path = '@FOLDER@/in', maxFilesPerTrigger = '1');
CREATE MATERIALIZED VIEW names AS SELECT name, k, count(*) AS n, sum(v) AS s, max(at) AS last FROM trades GROUP BY name, k;
CREATE MATERIALIZED VIEW different AS
    SELECT k, count(DISTINCT name) AS names, count(DISTINCT name || v) AS pairs FROM trades GROUP BY k;
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

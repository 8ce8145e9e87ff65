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

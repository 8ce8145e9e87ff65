-- Prices as they come, and for each stock the step from one price to the next, kept up to date.
CREATE TABLE stock_prices (
    stock_id   int,
    event_time timestamp,
    price      double precision
);

CREATE MATERIALIZED VIEW price_steps AS
SELECT
    stock_id,
    event_time,
    price,
    price - LAG(price) OVER (PARTITION BY stock_id ORDER BY event_time) AS price_diff
FROM stock_prices;

INSERT INTO stock_prices VALUES
    (1, '2024-05-02 09:30:00', 101.5),
    (1, '2024-05-02 09:32:00', 103.25),
    (2, '2024-05-02 09:30:00', 55),
    (2, '2024-05-02 09:31:00', 54.5);
FLUSH;

SELECT * FROM price_steps ORDER BY stock_id, event_time;

-- A price that comes late takes its place, and only the rows whose values change are touched.
INSERT INTO stock_prices VALUES (1, '2024-05-02 09:31:00', 102);
FLUSH;

SELECT * FROM price_steps WHERE stock_id = 1 ORDER BY event_time;

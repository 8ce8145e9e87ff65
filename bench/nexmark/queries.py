"""The queries: in windowpane's SQL, in Flink's, and in DuckDB's, which answers from all events.

Their text is that of Flink's harness and of RisingWave's tests, but for what makes a result unique: ties have an order, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DELAY_SECONDS = 4
"""Of the watermark, behind the latest time."""

RANKS = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
"""The conditions by which q15 to q17 count bids."""


@dataclass(frozen=True)
class Query:
    """One query.

    Args:
        title: what it answers.
        reads: the entities that it reads.
        sql: in windowpane's SQL.
        duckdb: in DuckDB's; ``None`` where that is the same.
        flink: in Flink's; ``None`` where that is the same, and where ``runs_on_flink`` is false.
        columns: what is compared of the results: not what differs among ties, and means to three places.
    """

    title: str
    reads: tuple[str, ...]
    sql: str
    duckdb: str | None = None
    flink: str | None = None
    columns: str = "*"
    runs_on_flink: bool = True


@dataclass(frozen=True)
class _Dialect:
    """What the systems write in different ways."""

    tumble: Callable[[str], str]
    hop: Callable[[str], str]
    ten_seconds: str
    day: str


def _duckdb_windows(entity: str, slide: int) -> str:
    """Return the rows of an entity with each of the windows of ten seconds that they are in."""
    start = f"epoch_us(date_time) // {slide}000000 * {slide}000000 - behind * {slide}000000"
    rows = f"SELECT *, make_timestamp({start}) AS window_start FROM {entity}, range({10 // slide}) slides(behind)"
    return f"(SELECT *, window_start + INTERVAL '10 seconds' AS window_end FROM ({rows}))"


_OURS = _Dialect(
    tumble=lambda entity: f"TUMBLE({entity}, date_time, INTERVAL '10 seconds')",
    hop=lambda entity: f"HOP({entity}, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds')",
    ten_seconds="INTERVAL '10 seconds'",
    day="to_char(date_time, 'YYYY-MM-DD')",
)
_DUCKDB = _Dialect(
    tumble=lambda entity: _duckdb_windows(entity, 10),
    hop=lambda entity: _duckdb_windows(entity, 2),
    ten_seconds="INTERVAL '10 seconds'",
    day="strftime(date_time, '%Y-%m-%d')",
)
_FLINK = _Dialect(
    tumble=lambda entity: f"TABLE(TUMBLE(TABLE {entity}, DESCRIPTOR(date_time), INTERVAL '10' SECOND))",
    hop=lambda entity: f"TABLE(HOP(TABLE {entity}, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))",
    ten_seconds="INTERVAL '10' SECOND",
    day="DATE_FORMAT(date_time, 'yyyy-MM-dd')",
)


def _in_each(title: str, reads: tuple[str, ...], sql: Callable[[_Dialect], str], columns: str = "*") -> Query:
    return Query(title, reads, sql(_OURS), sql(_DUCKDB), sql(_FLINK), columns)


_WINNING_BIDS = """
    SELECT a.id, a.item_name, a.seller, a.category, b.bidder, b.price, b.date_time AS bid_time,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS place
    FROM auction a JOIN bid b ON a.id = b.auction WHERE b.date_time BETWEEN a.date_time AND a.expires"""


def _hottest(dialect: _Dialect) -> str:
    counted = f"""
        SELECT auction, count(*) AS num, window_start, window_end FROM {dialect.hop("bid")}
        GROUP BY auction, window_start, window_end"""
    most = f"SELECT max(num) AS most, window_start, window_end FROM ({counted}) d GROUP BY window_start, window_end"
    return f"""
        SELECT c.auction, c.num, c.window_start FROM ({counted}) c JOIN ({most}) m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most"""


def _highest(dialect: _Dialect) -> str:
    highest = f"SELECT max(price) AS most, window_end FROM {dialect.tumble('bid')} GROUP BY window_start, window_end"
    return f"""
        SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN ({highest}) m ON b.price = m.most
        WHERE b.date_time BETWEEN m.window_end - {dialect.ten_seconds} AND m.window_end"""


def _registered_sellers(dialect: _Dialect) -> str:
    registered = f"""
        SELECT id, name, window_start, window_end FROM {dialect.tumble("person")}
        GROUP BY id, name, window_start, window_end"""
    sellers = f"""
        SELECT seller, window_start, window_end FROM {dialect.tumble("auction")}
        GROUP BY seller, window_start, window_end"""
    return f"""
        SELECT p.id, p.name, p.window_start FROM ({registered}) p JOIN ({sellers}) a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end"""


def _bids_of_days(keys: str, calls: str) -> Callable[[_Dialect], str]:
    return lambda dialect: f"SELECT {keys}{dialect.day} AS bid_day, {calls} FROM bid GROUP BY {keys}{dialect.day}"


_BIDS = ", ".join(["count(*) AS total_bids", *(f"count(*) FILTER (WHERE {RANKS[each]}) AS {each}_bids" for each in RANKS)])
_DISTINCT = ", ".join(
    f"count(DISTINCT {column}) AS total_{column}s, "
    + ", ".join(f"count(DISTINCT {column}) FILTER (WHERE {RANKS[each]}) AS {each}_{column}s" for each in RANKS)
    for column in ("bidder", "auction")
)
_PRICES = "min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price"


def channel_ids(number: str) -> str:
    """Return the query of channels, with the expression that takes the number from an address, NULL where there is none."""
    known = {"apple": 0, "google": 1, "facebook": 2, "baidu": 3}
    whens = " ".join(f"WHEN '{name}' THEN '{number}'" for name, number in known.items())
    return f"""
        SELECT auction, bidder, price, channel, CASE lower(channel) {whens} ELSE {number} END AS channel_id FROM bid
        WHERE {number} IS NOT NULL OR lower(channel) IN ('{"', '".join(known)}')"""


QUERIES = {
    "q0": Query("bids as they are", ("bid",), "SELECT auction, bidder, price, date_time, extra FROM bid"),
    "q1": Query(
        "prices in another currency", ("bid",), "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid"
    ),
    "q2": Query("bids on some auctions", ("bid",), "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),
    "q3": Query(
        "auctions of category 10 by sellers of three states",
        ("auction", "person"),
        """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    ),
    "q4": Query(
        "mean of the winning prices of each category",
        ("auction", "bid"),
        """
        SELECT category, avg(highest) AS mean FROM (
            SELECT max(b.price) AS highest, a.category FROM auction a JOIN bid b ON a.id = b.auction
            WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) winning
        GROUP BY category""",
        columns="category, round(mean::double, 3)",
    ),
    "q5": _in_each("auctions with most bids in each ten seconds", ("bid",), _hottest),
    "q6": Query(
        "mean price of the last auctions that a seller has sold",
        ("auction", "bid"),
        f"""
        SELECT seller, id, avg(price) OVER (
            PARTITION BY seller ORDER BY bid_time, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS mean
        FROM (SELECT * FROM ({_WINNING_BIDS}) b WHERE place <= 1) won""",
        columns="seller, id, round(mean::double, 3)",
        runs_on_flink=False,
    ),
    "q7": _in_each("highest bids of each ten seconds", ("bid",), _highest),
    "q8": _in_each(
        "persons who opened an auction in the ten seconds in which they registered", ("person", "auction"), _registered_sellers
    ),
    "q9": Query("the winning bid of each auction", ("auction", "bid"), f"SELECT * FROM ({_WINNING_BIDS}) b WHERE place <= 1"),
    "q11": Query(
        "bids of each bidder and session",
        ("bid",),
        """
        SELECT bidder, count(*) AS n, window_start, window_end
        FROM SESSION(bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10 seconds')
        GROUP BY bidder, window_start, window_end""",
        duckdb="""
        SELECT bidder, count(*) AS n, min(date_time) AS window_start, max(date_time) + INTERVAL '10 seconds' AS window_end FROM (
            SELECT *, sum(begins::int) OVER (PARTITION BY bidder ORDER BY date_time) AS number FROM (
                SELECT bidder, date_time, coalesce(date_time >= INTERVAL '10 seconds'
                    + lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time), true) AS begins FROM bid))
        GROUP BY bidder, number""",
        flink="""
        SELECT bidder, count(*) AS n, window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    ),
    "q14": Query(
        "bids of a price range, with the part of the day and the letters c of a text",
        ("bid",),
        """
        SELECT auction, bidder, 0.908 * price AS price, CASE
                WHEN extract(hour FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN extract(hour FROM date_time) BETWEEN 7 AND 19 THEN 'otherTime' ELSE 'nightTime' END AS bid_time_type,
            date_time, extra, char_length(extra) - char_length(replace(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    ),
    "q15": _in_each("bids, bidders and auctions of each day, by price", ("bid",), _bids_of_days("", f"{_BIDS}, {_DISTINCT}")),
    "q16": _in_each("the same of each channel and day", ("bid",), _bids_of_days("channel, ", f"{_BIDS}, {_DISTINCT}")),
    "q17": _in_each(
        "bids and prices of each auction and day",
        ("bid",),
        _bids_of_days("auction, ", f"{_BIDS}, {_PRICES}"),
        columns="* REPLACE (round(avg_price::double, 3) AS avg_price)",
    ),
    "q18": Query(
        "the last bid of each bidder on each auction",
        ("bid",),
        """
        SELECT auction, bidder, price, channel, url, date_time, extra FROM (
            SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, price DESC) AS place FROM bid) b
        WHERE place <= 1""",
        columns="auction, bidder, price, date_time",
    ),
    "q19": Query(
        "the ten highest bids of each auction",
        ("bid",),
        """
        SELECT * FROM (
            SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder) AS place FROM bid) b
        WHERE place <= 10""",
        columns="auction, bidder, price, date_time, place",
    ),
    "q20": Query(
        "bids with their auction, of category 10",
        ("bid", "auction"),
        """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_time, b.extra AS bid_extra, a.item_name,
            a.description, a.initial_bid, a.reserve, a.date_time AS auction_time, a.expires, a.seller, a.category,
            a.extra AS auction_extra
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    ),
    "q21": Query(
        "the number of each channel",
        ("bid",),
        channel_ids("(regexp_match(url, '(&|^)channel_id=([^&]*)'))[2]"),
        duckdb=channel_ids("nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"),
        flink=channel_ids("REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)"),
    ),
    "q22": Query(
        "the folders of each url",
        ("bid",),
        """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
            split_part(url, '/', 6) AS dir3
        FROM bid""",
        flink="""
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2,
            SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid""",
    ),
    "q23": Query(
        "bids with their bidder and the auctions that he sells",
        ("bid", "person", "auction"),
        """
        SELECT b.bidder, b.price, b.channel, b.url, b.extra AS bid_extra, p.id, p.name, p.city, p.state, a.item_name,
            a.expires, a.category, a.extra AS auction_extra
        FROM bid b JOIN person p ON p.id = b.bidder JOIN auction a ON a.seller = b.bidder""",
    ),
}
"""The queries by name, those of Nexmark but for those that read the clock or write files."""

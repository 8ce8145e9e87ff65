"""``python -m tests.sql.connect_server``: a server of Spark Connect, which prints its address and lives until it is killed."""

from __future__ import annotations

import socket
import time

from tests.spark.connect_program import SETTINGS


def main() -> None:
    from pyspark.sql import SparkSession

    plugin = "org.apache.spark.sql.connect.SparkConnectPlugin"
    started = SparkSession.builder.master("local[2]").config(map=SETTINGS).config("spark.plugins", plugin)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started.config("spark.connect.grpc.binding.port", str(port)).getOrCreate()
    print(f"sc://127.0.0.1:{port}", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()

"""windowpane with a function of the user's own, on rows that Spark reads and hands over."""

from __future__ import annotations

from bench.systems.on_own_functions import main

if __name__ == "__main__":
    main({"spark.windowpane.files.readInArrow": "false"})

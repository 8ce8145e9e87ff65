"""windowpane on rows like users', which Spark reads and hands over."""

from __future__ import annotations

from bench.systems.on_users_windowpane import main

if __name__ == "__main__":
    main({"spark.windowpane.files.readInArrow": "false"})

"""SQL: text to plans, and a session that keeps materialized views up to date.

``Session`` keeps tables, views and the state of their operators in one DuckDB database, without a JVM; ``Session(spark)`` runs
the same SQL with every view a streaming query of Spark.
"""

# ruff: noqa: E402 (a missing package is reported before it is imported)
from windowpane.errors import MissingExtraError

MissingExtraError.unless("sql", "sqlglot")

from windowpane.sql.results import Result
from windowpane.sql.session import Session

__all__ = ["Result", "Session"]

"""SQL: text to plans, and a session that keeps materialized views up to date.

``Session`` is the embedded engine: tables, views and the state of their operators in one DuckDB database, no JVM.
"""

from windowpane.sql.results import Result
from windowpane.sql.session import Session

__all__ = ["Result", "Session"]

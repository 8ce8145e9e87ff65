"""Replacing a column of a table by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)

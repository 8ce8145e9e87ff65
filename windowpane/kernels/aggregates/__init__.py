"""The built-in aggregates on Arrow tables, one algorithm a file."""

from __future__ import annotations

from windowpane.kernels.aggregates.forms import ORDERED, columnar_form, is_scalar
from windowpane.kernels.aggregates.protocol import ColumnarAggregate

__all__ = ["ORDERED", "ColumnarAggregate", "columnar_form", "is_scalar"]

"""The functions of numerics by the names that expressions call them by."""

from __future__ import annotations

from typing import Final

from windowpane.errors import MistakeError
from windowpane.sql.expressions.types import DIGITS, EXACT_PLACES, QUOTIENT_PLACES, VARIANCE_PLACES
from windowpane.sql.numerics import kernels

_QUOTIENT = f"DECIMAL({DIGITS}, {QUOTIENT_PLACES})"
_VARIANCE = f"DECIMAL({DIGITS}, {VARIANCE_PLACES})"
_EXACT = f"DECIMAL({DIGITS}, {EXACT_PLACES})"

FUNCTIONS: Final[dict[str, tuple[kernels.Kernel, str]]] = {
    "quotient": (kernels.quotient, _QUOTIENT),
    "quotient_at": (kernels.quotient_at, "VARCHAR"),
    "quotient_within": (kernels.quotient_within, "VARCHAR"),
    "div": (kernels.whole_quotient, f"DECIMAL({DIGITS}, 0)"),
    "product": (kernels.product, _EXACT),
    "rounded_product": (kernels.rounded_product, _QUOTIENT),
    "exactly": (kernels.exactly, "VARCHAR"),
    "round_at": (kernels.rounded_at, "VARCHAR"),
    "trunc_at": (kernels.truncated_at, "VARCHAR"),
    "parsed": (kernels.parsed, _EXACT),
    "parsed_at": (kernels.parsed_at, "VARCHAR"),
    "taken": (kernels.taken, "VARCHAR"),
    "text": (kernels.text, "VARCHAR"),
    "var_samp": (kernels.variance(sample=True, root=False), _VARIANCE),
    "var_pop": (kernels.variance(sample=False, root=False), _VARIANCE),
    "stddev_samp": (kernels.variance(sample=True, root=True), _QUOTIENT),
    "stddev_pop": (kernels.variance(sample=False, root=True), _QUOTIENT),
    "sqrt": (kernels.root, _QUOTIENT),
    "exp": (kernels.of_decimals(kernels.exponential), _QUOTIENT),
    "ln": (kernels.of_decimals(kernels.logarithm), _QUOTIENT),
    "log10": (kernels.of_decimals(kernels.logarithm_of_ten), _QUOTIENT),
    "log": (kernels.of_decimals(kernels.logarithm_to), _QUOTIENT),
    "power": (kernels.of_decimals(kernels.power), _QUOTIENT),
    "power_at": (kernels.power_at, "VARCHAR"),
}


def called(name: str, *arguments: str) -> str:
    if name not in FUNCTIONS:
        raise MistakeError("the function is registered")
    return f"windowpane_numeric_{name}({', '.join(arguments)})"

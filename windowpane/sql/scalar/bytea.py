"""Functions of bytea, and those that take it beside text."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, build, counted
from windowpane.sql.expressions.types import BIGINT, BYTEA, INTEGER, VARCHAR, is_integer
from windowpane.sql.scalar.signatures import Builder, builder, fixed

_WHOLE = 2**31 - 1


@builder
def or_text(arguments: Sequence[Expr], of_bytes: Builder, of_text: Builder) -> Expr:
    """Return a function that is another one where its first argument is bytea."""
    return (of_bytes if arguments and arguments[0].type == BYTEA else of_text)(arguments)


def trimmed(side: str) -> Builder:
    """Return a trim at both sides of bytea, or at the ``left`` or the ``right`` one."""
    return fixed(BYTEA, f"windowpane_bytea_trim({{0}}, {{1}}, '{side}')", BYTEA, BYTEA)


def substring(arguments: Sequence[Expr]) -> Expr:
    """Return ``substring(bytes, start[, count])``."""
    given = [*arguments, Expr(f"{_WHOLE}", INTEGER)] if len(arguments) == 2 else arguments
    return fixed(BYTEA, "windowpane_bytea_part({*})", BYTEA, INTEGER, INTEGER)(given)


def _bit_count(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    if is_integer(arguments[0].type):
        return build(BIGINT, "CAST(bit_count({0}) AS BIGINT)", arguments[0])
    return fixed(BIGINT, "windowpane_bytea_bit_count({0})", BYTEA)(arguments)


def _hash(name: str) -> Builder:
    return fixed(BYTEA, f"unhex({name}({{0}}))", BYTEA)


REVERSED = fixed(BYTEA, "windowpane_bytea_reverse({0})", BYTEA)

BYTEA_FUNCTIONS: dict[str, Builder] = {
    "encode": fixed(VARCHAR, "windowpane_bytea_encode({*})", BYTEA, VARCHAR),
    "decode": fixed(BYTEA, "windowpane_bytea_decode({*})", VARCHAR, VARCHAR),
    "convert_from": fixed(VARCHAR, "windowpane_bytea_text({*})", BYTEA, VARCHAR),
    "convert_to": fixed(BYTEA, "windowpane_bytea_of_text({*})", VARCHAR, VARCHAR),
    "get_byte": fixed(INTEGER, "windowpane_bytea_get_byte({*})", BYTEA, INTEGER),
    "bit_count": _bit_count,
    "crc32": fixed(BIGINT, "windowpane_bytea_crc32({0})", BYTEA),
    "sha1": _hash("sha1"),
    "sha256": _hash("sha256"),
}

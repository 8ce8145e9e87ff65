"""Functions of text and of bytea, and those that take either."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted, output_text, places, settled
from windowpane.sql.expressions.types import BIGINT, BOOLEAN, BYTEA, INTEGER, SMALLINT, VARCHAR, is_text
from windowpane.sql.scalar.signatures import Builder, accepted, builder, by_count, fixed, taking


def _md5(arguments: Sequence[Expr]) -> Expr:
    return fixed(VARCHAR, "md5({0})", BYTEA if arguments and arguments[0].type == BYTEA else VARCHAR)(arguments)


def _hash(name: str) -> Builder:
    return fixed(BYTEA, f"unhex({name}({{0}}))", BYTEA)


BYTEA_FUNCTIONS: dict[str, Builder] = {
    "encode": fixed(VARCHAR, "windowpane_bytea_encode({*})", BYTEA, VARCHAR),
    "decode": fixed(BYTEA, "windowpane_bytea_decode({*})", VARCHAR, VARCHAR),
    "convert_from": fixed(VARCHAR, "windowpane_bytea_text({*})", BYTEA, VARCHAR),
    "convert_to": fixed(BYTEA, "windowpane_bytea_of_text({*})", VARCHAR, VARCHAR),
    "sha1": _hash("sha1"),
    "sha256": _hash("sha256"),
}


@builder
def _joined(arguments: Sequence[Expr], name: str) -> Expr:
    counted(arguments, 1, 100)
    return build(VARCHAR, f"{name}({places(len(arguments))})", *(output_text(settled(argument)) for argument in arguments))


@builder
def _pad(arguments: Sequence[Expr], name: str) -> Expr:
    filled = [*arguments, Expr("' '", VARCHAR)] if len(arguments) == 2 else arguments
    return fixed(VARCHAR, f"windowpane_{name}({{0}}, {{1}}, {{2}})", VARCHAR, INTEGER, VARCHAR)(filled)


def _replace(arguments: Sequence[Expr]) -> Expr:
    """Return ``replace``; a new text that is written in the query is short, and the length of the result is not checked."""
    is_short = len(arguments) == 3 and arguments[2].literal is not None
    name = "replace" if is_short else "windowpane_replace"
    return fixed(VARCHAR, f"{name}({{0}}, {{1}}, {{2}})", VARCHAR, VARCHAR, VARCHAR)(arguments)


@taking
def _length(value: Expr) -> Expr:
    if value.type == BYTEA:
        return build(INTEGER, "CAST(octet_length({0}) AS INTEGER)", value)
    if not is_text(value.type):
        raise MismatchError(f"it takes text, not {value.type}. Cast the argument.")
    return build(INTEGER, "CAST(length({0}) AS INTEGER)", convert(value, VARCHAR))


@builder
def _octets(arguments: Sequence[Expr], factor: int) -> Expr:
    counted(arguments, 1, 1)
    if arguments[0].type == BYTEA:
        return build(INTEGER, f"CAST(octet_length({{0}}) * {factor} AS INTEGER)", arguments[0])
    return fixed(INTEGER, f"CAST(strlen({{0}}) * {factor} AS INTEGER)", VARCHAR)(arguments)


@taking
def _hex(value: Expr) -> Expr:
    """Return the digits of an integer's bits: of 32, or of the 64 of a bigint."""
    bits = "{0} & 4294967295" if value.type in (SMALLINT, INTEGER) else "{0}"
    return build(VARCHAR, f"lower(to_hex({bits}))", accepted(value, BIGINT))


def _trim(name: str) -> Builder:
    return fixed(VARCHAR, f"{name}({{*}})", VARCHAR, VARCHAR, least=1)


_SUBSTRING = by_count(
    fixed(VARCHAR, "windowpane_substring_from({*})", VARCHAR, INTEGER),
    fixed(VARCHAR, "windowpane_substring({*})", VARCHAR, INTEGER, INTEGER),
)
_OVERLAY = by_count(
    fixed(VARCHAR, "windowpane_overlay({0}, {1}, {2}, length({1}))", VARCHAR, VARCHAR, INTEGER),
    fixed(VARCHAR, "windowpane_overlay({*})", VARCHAR, VARCHAR, INTEGER, INTEGER),
)

TEXT_FUNCTIONS: dict[str, Builder] = {
    "upper": fixed(VARCHAR, "windowpane_upper({0})", VARCHAR),
    "lower": fixed(VARCHAR, "lower({0})", VARCHAR),
    "initcap": fixed(VARCHAR, "windowpane_initcap({0})", VARCHAR),
    "length": _length,
    "char_length": _length,
    "character_length": _length,
    "octet_length": _octets(1),
    "bit_length": _octets(8),
    "substr": _SUBSTRING,
    "substring": _SUBSTRING,
    "overlay": _OVERLAY,
    "left": fixed(VARCHAR, "left({0}, {1})", VARCHAR, INTEGER),
    "right": fixed(VARCHAR, "right({0}, {1})", VARCHAR, INTEGER),
    "strpos": fixed(INTEGER, "CAST(strpos({0}, {1}) AS INTEGER)", VARCHAR, VARCHAR),
    "position": fixed(INTEGER, "CAST(strpos({1}, {0}) AS INTEGER)", VARCHAR, VARCHAR),
    "trim": _trim("trim"),
    "btrim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "replace": _replace,
    "reverse": fixed(VARCHAR, "windowpane_reverse({0})", VARCHAR),
    "repeat": fixed(VARCHAR, "windowpane_repeat({0}, {1})", VARCHAR, INTEGER),
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
    "translate": fixed(VARCHAR, "translate({0}, {1}, {2})", VARCHAR, VARCHAR, VARCHAR),
    "split_part": fixed(VARCHAR, "windowpane_split_part({0}, {1}, {2})", VARCHAR, VARCHAR, INTEGER),
    "starts_with": fixed(BOOLEAN, "starts_with({0}, {1})", VARCHAR, VARCHAR),
    "ends_with": fixed(BOOLEAN, "ends_with({0}, {1})", VARCHAR, VARCHAR),
    "md5": _md5,
    "ascii": fixed(INTEGER, "ascii({0})", VARCHAR),
    "chr": fixed(VARCHAR, "windowpane_chr({0})", INTEGER),
    "to_hex": _hex,
    **BYTEA_FUNCTIONS,
    "concat": _joined("concat"),
    "concat_ws": _joined("concat_ws"),
}

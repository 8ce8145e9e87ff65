"""Functions and operators of jsonb.

Sources: PostgreSQL, "JSON Functions and Operators"; operators have a function of their own there, by whose name they are bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from windowpane.sql.expressions.expr import Expr, MismatchError, as_text, build, counted, places, settled
from windowpane.sql.expressions.jsonb import json_text, to_jsonb
from windowpane.sql.expressions.types import BOOLEAN, INTEGER, JSONB, VARCHAR, SqlType, array_of, is_integer
from windowpane.sql.scalar.macros import refused
from windowpane.sql.scalar.signatures import Builder, accepted, fixed, taking

_TEXTS = array_of(VARCHAR)


def _computed(name: str, result: SqlType, *kinds: SqlType, more: str = "") -> Builder:
    """Return a function that is computed by ours of that name on the texts of values.

    Args:
        name: of our function.
        result: the type of its result.
        kinds: the types of its arguments.
        more: further arguments in SQL.
    """
    texts = [f"CAST({{{place}}} AS VARCHAR)" if kind == JSONB else f"{{{place}}}" for place, kind in enumerate(kinds)]
    call = f"windowpane_jsonb_{name}({', '.join(texts)}{more})"
    return fixed(result, f"CAST({call} AS JSON)" if result == JSONB else call, *kinds)


@taking
def _deleted(value: Expr, what: Expr) -> Expr:
    """Return ``jsonb - what``: a key, several, or the element at an index."""
    if is_integer(what.type):
        return _computed("without_element", JSONB, JSONB, INTEGER)((value, build(INTEGER, "CAST({0} AS INTEGER)", what)))
    if what.type == _TEXTS:
        return _computed("without_keys", JSONB, JSONB, _TEXTS)((value, what))
    return _computed("without_key", JSONB, JSONB, VARCHAR)((value, what))


def _at(name: str, result: SqlType, arguments: Sequence[Expr]) -> Expr:
    """Return ``jsonb_extract_path`` or its like: steps are arguments, or one array."""
    counted(arguments, 2, 100)
    document, *steps = arguments
    if len(steps) != 1 or steps[0].type != _TEXTS:
        steps = [build(_TEXTS, f"CAST([{places(len(steps))}] AS VARCHAR[])", *(accepted(step, VARCHAR) for step in steps))]
    return _computed(name, result, JSONB, _TEXTS)((document, *steps))


def _listed(values: Sequence[Expr], brackets: str) -> Expr:
    """Return the jsonb of texts of JSON, with a comma between any two."""
    joined = " || ',' || ".join(f"{{{place}}}" for place in range(len(values))) or "''"
    first, last = (each * 2 if each in "{}" else each for each in brackets)
    return build(JSONB, f"CAST(windowpane_jsonb('{first}' || {joined} || '{last}') AS JSON)", *values)


def _part(value: Expr) -> Expr:
    return build(VARCHAR, "coalesce({0}, 'null')", json_text(settled(value)))


def pair(key: Expr, value: Expr) -> Expr:
    """Return a key and its value as they stand in the JSON text of an object, NULL where the key is."""
    key = settled(key)
    if key.type == JSONB or key.type.element is not None:
        raise MismatchError(f"a key is a single value, not {key.type}. Cast it to text.")
    name = build(VARCHAR, "CAST({0} AS VARCHAR)", key) if key.type == BOOLEAN else as_text(key)
    return build(VARCHAR, "({0} || ':' || {1})", json_text(name), _part(value))


def object_of_pairs(pairs: Expr) -> Expr:
    """Return the object of a list of pairs, none of which may be NULL."""
    wrong = refused("'field name must not be null'")
    checked = f"CASE WHEN len({{0}}) > list_count({{0}}) THEN {wrong} ELSE array_to_string({{0}}, ',') END"
    return build(JSONB, f"CAST(windowpane_jsonb('{{{{' || {checked} || '}}}}') AS JSON)", pairs)


def _built_array(arguments: Sequence[Expr]) -> Expr:
    return _listed([_part(argument) for argument in arguments], "[]")


def _built_object(arguments: Sequence[Expr]) -> Expr:
    if len(arguments) % 2:
        raise MismatchError("it takes keys and their values in turn: a key lacks its value.")
    pairs = [pair(*arguments[place : place + 2]) for place in range(0, len(arguments), 2)]
    wrong = [refused(f"'argument {2 * place + 1}: key must not be null'") for place in range(len(pairs))]
    checked = [build(VARCHAR, f"coalesce({{0}}, {refusal})", each) for each, refusal in zip(pairs, wrong, strict=True)]
    return _listed(checked, "{}")


def _with_value(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 3, 4)
    kinds = (JSONB, _TEXTS, JSONB, BOOLEAN)[: len(arguments)]
    return _computed("with_value", JSONB, *kinds, more="" if len(arguments) > 3 else ", TRUE")(arguments)


def _object(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 2)
    if len(arguments) > 1:
        return _computed("object_of_both", JSONB, _TEXTS, _TEXTS)(arguments)
    return _computed("object_of", JSONB, _TEXTS)(arguments)


JSONB_FUNCTIONS: dict[str, Builder] = {
    "to_jsonb": taking(to_jsonb),
    "jsonb_typeof": fixed(VARCHAR, "windowpane_jsonb_type({0})", JSONB),
    "jsonb_array_length": fixed(INTEGER, "windowpane_jsonb_length({0})", JSONB),
    "jsonb_extract_path": partial(_at, "at", JSONB),
    "jsonb_extract_path_text": partial(_at, "text_at", VARCHAR),
    "jsonb_exists": _computed("has_key", BOOLEAN, JSONB, VARCHAR),
    "jsonb_exists_any": _computed("has_any_key", BOOLEAN, JSONB, _TEXTS),
    "jsonb_exists_all": _computed("has_all_keys", BOOLEAN, JSONB, _TEXTS),
    "jsonb_contains": _computed("contains", BOOLEAN, JSONB, JSONB),
    "jsonb_contained": taking(lambda part, value: _computed("contains", BOOLEAN, JSONB, JSONB)((value, part))),
    "jsonb_concat": _computed("concatenated", JSONB, JSONB, JSONB),
    "jsonb_delete": _deleted,
    "jsonb_delete_path": _computed("without_path", JSONB, JSONB, _TEXTS),
    "jsonb_set": _with_value,
    "jsonb_strip_nulls": _computed("without_nulls", JSONB, JSONB),
    "jsonb_pretty": _computed("indented", VARCHAR, JSONB),
    "jsonb_build_array": _built_array,
    "jsonb_build_object": _built_object,
    "jsonb_object": _object,
}
"""By name."""

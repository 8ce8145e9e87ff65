"""Functions of jsonb: each takes and returns the one text of a value, see ``json_values``.

Sources: PostgreSQL, "JSON Functions and Operators", "jsonb Containment and Existence".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from windowpane.errors import InvalidTextError, InvalidValueError, OutOfRangeError
from windowpane.sql.values.json_values import read, text, whole, write

Path = Sequence[str | None]

_INDEX = re.compile(r"\s*[+-]?\d{1,10}")


def at(document: str, path: Path) -> str | None:
    """Return what is at the end of a path, ``None`` where nothing is; a negative step counts from the end of an array.

    Example:
        >>> at('{"a":[1,2]}', ["a", "-1"])
        '2'
    """
    value = read(document)
    for step in path:
        if step is None:
            return None
        place = _place(value, step)
        if place is None:
            return None
        value = value[place]
    return write(value)


def text_at(document: str, path: Path) -> str | None:
    """Return what is at the end of a path as text: a text is itself, ``null`` is NULL."""
    found = at(document, path)
    if found is None or found == "null":
        return None
    return read(found) if found.startswith('"') else text(found)


def has_key(document: str, key: str) -> bool:
    """Whether a text is a key of an object, an element of an array, or the whole value."""
    value = read(document)
    return key in value if isinstance(value, dict) else key in (value if isinstance(value, list) else [value])


def has_any_key(document: str, keys: Path) -> bool:
    return any(has_key(document, key) for key in keys if key is not None)


def has_all_keys(document: str, keys: Path) -> bool:
    return all(has_key(document, key) for key in keys if key is not None)


def contains(document: str, part: str) -> bool:
    """Whether a value has another one in it, at the same depth; an array has its elements, whatever their order and number.

    Example:
        >>> contains('{"a":[1,2],"b":3}', '{"a":[2]}'), contains("[1,2]", "2"), contains('{"a":[1]}', '{"a":1}')
        (True, True, False)
    """
    value, other = whole(read(document)), whole(read(part))
    if isinstance(value, list) and not isinstance(other, list | dict):
        other = [other]  # so it is for the whole value, not for those in it
    return _contains(value, other)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and _contains(value[key], each) for key, each in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return all(any(_contains(one, each) for one in value) for each in part)
    if isinstance(value, list | dict) or isinstance(part, list | dict):
        return False
    return value == part and isinstance(value, bool) == isinstance(part, bool)


def concatenated(one: str, other: str) -> str:
    """Return two objects as one, in which the second one's values count, or two arrays as one; any other value is an element."""
    first, second = read(one), read(other)
    if isinstance(first, dict) and isinstance(second, dict):
        return write(first | second)
    return write(_elements(first) + _elements(second))


def _elements(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def without_key(document: str, key: str) -> str:
    return without_keys(document, [key])


def without_keys(document: str, keys: Path) -> str:
    """Return an object without some keys, or an array without the elements that are one of these texts."""
    value = read(document)
    if isinstance(value, dict):
        return write({key: each for key, each in value.items() if key not in keys})
    if not isinstance(value, list):
        raise InvalidValueError("cannot delete from scalar")
    return write([each for each in value if not (isinstance(each, str) and each in keys)])


def without_element(document: str, index: int) -> str:
    """Return an array without one element; a negative index counts from its end."""
    value = read(document)
    if isinstance(value, dict):
        raise InvalidValueError("cannot delete from object using integer index")
    if not isinstance(value, list):
        raise InvalidValueError("cannot delete from scalar")
    if -len(value) <= index < len(value):
        del value[index]
    return write(value)


def without_path(document: str, path: Path) -> str:
    """Return a value without what is at the end of a path."""
    value, parent, last = _opened(document, path, "delete")
    place = _place(parent, last)
    if place is not None:
        del parent[place]
    return write(value)


def with_value(document: str, path: Path, new: str, creates: bool) -> str:
    """Return a value with another one at the end of a path.

    Args:
        document: the value.
        path: its steps; where one before the last leads nowhere, nothing is changed.
        new: what stands there afterwards.
        creates: whether a key is added to an object, and an element to that end of an array which the last step lies beyond.
    """
    value, parent, last = _opened(document, path, "set")
    place = _place(parent, last)
    if place is not None:
        parent[place] = read(new)
    elif creates and isinstance(parent, dict):
        parent[last] = read(new)
    elif creates and isinstance(parent, list):
        parent.insert(0 if int(last) < 0 else len(parent), read(new))
    return write(value)


def _opened(document: str, path: Path, verb: str) -> tuple[Any, Any, str]:
    """Return a value, the object or array in it that the last step of a path is in, if there is one, and the step."""
    top = value = read(document)
    if not isinstance(value, dict | list):
        raise InvalidValueError(f"cannot {verb} path in scalar")
    for number, step in enumerate(path, 1):
        if not isinstance(value, dict | list):
            break
        if step is None:
            raise InvalidValueError(f"path element at position {number} is null")
        if isinstance(value, list) and _index(step) is None:
            raise InvalidTextError(f'path element at position {number} is not an integer: "{step}"')
        if number == len(path):
            return top, value, step
        place = _place(value, step)
        if place is None:
            break
        value = value[place]
    return top, None, ""


def _place(value: Any, step: str) -> Any:
    """Return by what an object or array has what a step leads to, ``None`` where it leads nowhere."""
    if isinstance(value, dict):
        return step if step in value else None
    index = _index(step) if isinstance(value, list) else None
    return index if index is not None and -len(value) <= index < len(value) else None


def _index(step: str) -> int | None:
    return int(step) if _INDEX.fullmatch(step) and -(2**31) <= int(step) < 2**31 else None


def without_nulls(document: str) -> str:
    """Return a value without the fields of its objects that are ``null``; elements of arrays stay."""
    return write(_without_nulls(read(document)))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def indented(document: str) -> str:
    """Return a value on several lines."""
    return json.dumps(read(document), ensure_ascii=False, indent=4)


def object_of(pairs: Path) -> str:
    """Return an object of keys and their values in turn, all of them texts."""
    if len(pairs) % 2:
        raise InvalidValueError("array must have even number of elements")
    return _object(pairs[::2], pairs[1::2])


def object_of_both(keys: Path, values: Path) -> str:
    """Return an object of keys and, in an array of their own, their values, all of them texts."""
    if len(keys) != len(values):
        raise InvalidValueError("mismatched array dimensions")
    return _object(keys, values)


def _object(keys: Path, values: Path) -> str:
    if None in keys:
        raise InvalidValueError("null value not allowed for object key")
    return write(dict(zip(keys, values, strict=True)))


def is_json(document: str, kind: str) -> bool:
    """Whether a text is a JSON text: of an ``ARRAY``, an ``OBJECT``, a ``SCALAR`` or any ``VALUE``."""
    try:
        value = read(document)
    except (InvalidTextError, OutOfRangeError):
        return False
    found = "ARRAY" if isinstance(value, list) else "OBJECT" if isinstance(value, dict) else "SCALAR"
    return kind in (found, "VALUE")


CONDITIONS: tuple[Callable[..., bool], ...] = (contains, has_all_keys, has_any_key, has_key, is_json)
TEXTS: tuple[Callable[..., str | None], ...] = (
    at,
    concatenated,
    indented,
    object_of,
    object_of_both,
    text_at,
    with_value,
    without_element,
    without_key,
    without_keys,
    without_nulls,
    without_path,
)

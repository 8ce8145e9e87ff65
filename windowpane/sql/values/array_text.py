"""Arrays as text, as PostgreSQL reads them: ``{1,NULL,"a b",{2}}``."""

from __future__ import annotations

import json

from windowpane.errors import InvalidTextError

_SPACE = " \t\n\r\f\v"
Items = list["str | Items | None"]


def read_array(text: str, depth: int) -> Items:
    """Return the elements of an array of ``depth`` dimensions, as texts; unquoted ``NULL`` is ``None``.

    Raises:
        InvalidTextError: the text is no array, or one of other dimensions.

    Example:
        >>> read_array('{1,NULL,"a b"}', 1)
        ['1', None, 'a b']
    """
    items, end = _Reader(text).array(_past_space(text, 0), depth)
    if _past_space(text, end) != len(text):
        raise _malformed(text)
    return items


def as_json(text: str, depth: int) -> str:
    """Return an array as JSON, for DuckDB to make a list of."""
    return json.dumps(read_array(text, depth), ensure_ascii=False)


def _past_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _malformed(text: str) -> InvalidTextError:
    return InvalidTextError(f'malformed array literal: "{text}"')


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def array(self, start: int, depth: int) -> tuple[Items, int]:
        """Return the elements of the array that begins at ``start``, and where it ends."""
        if self.text[start : start + 1] != "{":
            raise _malformed(self.text)
        items: Items = []
        position = _past_space(self.text, start + 1)
        if self.text[position : position + 1] == "}":
            return items, position + 1
        while True:
            item, position = self._item(_past_space(self.text, position), depth)
            items.append(item)
            position = _past_space(self.text, position)
            sign = self.text[position : position + 1]
            if sign == "}":
                return items, position + 1
            if sign != ",":
                raise _malformed(self.text)
            position += 1

    def _item(self, start: int, depth: int) -> tuple[str | Items | None, int]:
        if depth > 1:
            return self._null_or_array(start, depth)
        if self.text[start : start + 1] == '"':
            return self._quoted(start + 1)
        characters, position = list[str](), start
        while position < len(self.text) and self.text[position] not in ",}":
            if self.text[position] in '{"':
                raise _malformed(self.text)
            if self.text[position] == "\\":
                position += 1
            characters += self.text[position : position + 1]
            position += 1
        found = "".join(characters).rstrip(_SPACE)
        if not found:
            raise _malformed(self.text)
        return None if self.text[start:position].rstrip(_SPACE).upper() == "NULL" else found, position

    def _null_or_array(self, start: int, depth: int) -> tuple[Items | None, int]:
        if self.text[start : start + 4].upper() == "NULL":
            return None, start + 4
        return self.array(start, depth - 1)

    def _quoted(self, start: int) -> tuple[str, int]:
        characters, position = list[str](), start
        while position < len(self.text):
            sign = self.text[position]
            if sign == '"':
                return "".join(characters), position + 1
            if sign == "\\":
                position += 1
            characters += self.text[position : position + 1]
            position += 1
        raise _malformed(self.text)

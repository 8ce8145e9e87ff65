"""Values of bytea: how texts write them. The kernels' side of ``bytea``."""

from __future__ import annotations

import base64
import binascii
import re
import textwrap

from windowpane.errors import InvalidValueError

_BASE64_LINE = 76
_ESCAPE = re.compile(rb"\\(\\|[0-3][0-7]{2}|)", re.DOTALL)


def read(text: str) -> bytes:
    r"""Return what a text means: pairs of hexadecimal digits behind ``\x``, else text, with escapes such as ``\001``.

    Example:
        >>> read(r"\x6162"), read(r"a\001\\")
        (b'ab', b'a\x01\\')
    """
    return _of_hex(text[2:]) if text.startswith("\\x") else _of_escapes(text)


def _of_hex(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise InvalidValueError(
            f"invalid hexadecimal data: {digits!r} is no pairs of digits. Write \\x and two hexadecimal digits for each byte"
        ) from None


def _of_escapes(text: str) -> bytes:
    def byte(found: re.Match[bytes]) -> bytes:
        if not found[1]:
            raise InvalidValueError(
                f"invalid input syntax for type bytea: {text!r}. Write \\x and two hexadecimal digits for each byte, "
                "or a backslash and three octal digits"
            )
        return b"\\" if found[1] == b"\\" else bytes([int(found[1], 8)])

    return _ESCAPE.sub(byte, text.encode())


def _of_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise InvalidValueError(f"invalid base64: {error}") from None


def _escaped(value: bytes) -> str:
    return "".join("\\\\" if byte == 0x5C else chr(byte) if 0 < byte < 0x80 else f"\\{byte:03o}" for byte in value)


def _unknown(form: str) -> InvalidValueError:
    return InvalidValueError(f"unrecognized encoding: {form!r}. There are hex, base64 and escape")


def encode(value: bytes, form: str) -> str:
    """Return bytes as text: ``hex``, ``base64`` in lines of 76 characters, or ``escape``."""
    match form.lower():
        case "hex":
            return value.hex()
        case "base64":
            return "\n".join(textwrap.wrap(base64.b64encode(value).decode(), _BASE64_LINE))
        case "escape":
            return _escaped(value)
    raise _unknown(form)


def decode(text: str, form: str) -> bytes:
    """Return the bytes that a text of such a form stands for."""
    match form.lower():
        case "hex":
            return _of_hex(text)
        case "base64":
            return _of_base64(text)
        case "escape":
            return _of_escapes(text)
    raise _unknown(form)


def _check_utf8(encoding: str) -> None:
    if encoding.lower() not in ("utf8", "utf-8"):
        raise InvalidValueError(f"unrecognized encoding: {encoding!r}. There is UTF8")


def text_of(value: bytes, encoding: str) -> str:
    """Return bytes as the text they are."""
    _check_utf8(encoding)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidValueError('invalid byte sequence for encoding "UTF8"') from None


def bytes_of(text: str, encoding: str) -> bytes:
    """Return the bytes of a text."""
    _check_utf8(encoding)
    return text.encode()

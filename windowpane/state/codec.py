"""How state is written as bytes: the frame around every blob, and the canonical encoding of keys.

Frame: magic (3 bytes), length of the kind (1), kind (ASCII), format version (2, big endian), body. All kinds have
one version, ``FORMAT``. A reader names the kind it expects and refuses any other kind or version, so a checkpoint is
never misread. Until 0.1.0 is released what a kind holds may change without a new version.

Key encoding: one tag byte, then the value. Fixed-width values follow as they are; the others carry a length
(one byte below 255, else 0xff and eight bytes) or a count of encoded items. What a value's encoding holds
therefore says where it ends: no encoding is a proper prefix of another, and concatenated encodings decode one
after the other.

The encoding is canonical: equal values of one type give equal bytes, and unequal values never do. Types are
distinguished (1, True, 1.0 and Decimal 1 are four keys). It is not order-preserving; ``encode_int64`` is. Four
equalities need a rule, since neither Python nor SQL settles them for keys:

- every NaN is one key, and so are 0.0 and -0.0, Decimal 1.0 and 1.00;
- aware datetimes are one key when instant *and* zone are the same; all spellings of UTC are one zone;
- a wall time that a daylight-saving gap skips is the instant that it names, and decodes to that instant;
- subclasses of the builtin types (``Row``, named tuples, ``IntEnum``) are the builtin value they extend.

These functions hold no state: nothing here mutates or needs recovery.
"""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from windowpane.arrays.values import Value
from windowpane.errors import MistakeError, UnencodableKeyError, UnknownStateFormatError, UnreadableStateError

# --- the frame -----------------------------------------------------------------------------------------

FORMAT = 1  # The version of every format of state
_MAGIC = b"\xabWP"
_VERSION = struct.Struct(">H")


def frame(kind: str, body: bytes) -> bytes:
    """Return ``body`` as a blob that says what it is.

    >>> unframe("page", frame("page", b"rows"))
    b'rows'
    """
    name = kind.encode("ascii")
    return b"".join((_MAGIC, bytes((len(name),)), name, _VERSION.pack(FORMAT), body))


def unframe(kind: str, blob: bytes) -> bytes:
    header = _header(blob)
    if header is None:
        raise UnknownStateFormatError(kind, f"bytes without a windowpane frame ({blob[:16]!r})", FORMAT)
    found_kind, version, start = header
    if found_kind != kind:
        raise UnknownStateFormatError(kind, f"kind {found_kind!r}, version {version}", FORMAT)
    if version != FORMAT:
        raise UnknownStateFormatError(kind, f"version {version}", FORMAT)
    return blob[start:]


def kind_of(blob: bytes) -> str | None:
    """Return what kind of blob it is, ``None`` if it was never framed."""
    header = _header(blob)
    return None if header is None else header[0]


def _header(blob: bytes) -> tuple[str, int, int] | None:
    """Return kind, version and where the body starts; None if these bytes were never framed."""
    if len(blob) < 6 or blob[:3] != _MAGIC:
        return None
    end = 4 + blob[3]
    if len(blob) < end + 2:
        return None
    (version,) = _VERSION.unpack_from(blob, end)
    return blob[4:end].decode("ascii", "replace"), version, end + 2


# --- order-preserving integers -------------------------------------------------------------------------

_UINT64 = struct.Struct(">Q")
_UINT64_PAIR = struct.Struct(">QQ")
_BIAS = 1 << 63


def encode_int64(number: int) -> bytes:
    """Return 8 bytes whose byte order is the numeric order: big endian with the sign bit flipped.

    >>> encode_int64(-1) < encode_int64(0) < encode_int64(256)
    True
    """
    try:
        return _UINT64.pack(number + _BIAS)
    except struct.error:
        raise UnencodableKeyError(number, "it must be an integer of 64 bits") from None


def encode_int64_pair(first: int, second: int) -> bytes:
    try:
        return _UINT64_PAIR.pack(first + _BIAS, second + _BIAS)
    except struct.error:
        return encode_int64(first) + encode_int64(second)


def decode_int64(data: bytes) -> int:
    if len(data) != 8:
        raise UnreadableStateError(f"{data!r} is not an encoded 64-bit integer: {len(data)} bytes instead of 8")
    return int.from_bytes(data, "big") - _BIAS


# --- lengths -------------------------------------------------------------------------------------------

_LONG = 255


def encode_length(count: int) -> bytes:
    """Return how the length of a content, or the number of its items, is written before it."""
    return bytes((count,)) if count < _LONG else b"\xff" + _UINT64.pack(count)


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    count = data[at]
    if count < _LONG:
        return count, at + 1
    return _UINT64.unpack_from(data, at + 1)[0], at + 9


def _read_content(data: bytes, at: int) -> tuple[bytes, int]:
    count, start = _read_length(data, at)
    end = start + count
    if end > len(data):
        raise IndexError(f"{count} bytes announced, {len(data) - start} left")
    return data[start:end], end


# --- encoders ------------------------------------------------------------------------------------------

_Encoder = Callable[[Value], bytes]

_EPOCH = datetime(1970, 1, 1)
_SECOND = 1_000_000


# The tag with each one-byte length after it, made once: short strings are what keys are made of.
_STR_HEADS = tuple(b"s" + bytes((count,)) for count in range(_LONG))
_INT64 = struct.Struct(">cq")
_FLOAT = struct.Struct(">cd")
_DAY = struct.Struct(">cI")
_NAN = b"f\x7f\xf8\x00\x00\x00\x00\x00\x00"


def encode_key(value: object) -> bytes:
    """Return the canonical encoding of a key: equal keys give equal bytes, and only they do.

    >>> decode_key(encode_key(("LGA", 7)))
    ('LGA', 7)
    """
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    for base in type(value).__mro__[1:]:
        if base in _EXTENSIBLE:
            return _ENCODERS[base](value)
    raise UnencodableKeyError(value, "keys need a canonical encoding, which this type has not")


def _encode_int(value: int) -> bytes:
    try:
        return _INT64.pack(b"i", value)
    except struct.error:
        digits = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        return b"I" + encode_length(len(digits)) + digits


def _encode_str(value: str) -> bytes:
    try:
        text = value.encode()
    except UnicodeEncodeError:
        text = value.encode("utf-8", "surrogatepass")
    count = len(text)
    return _STR_HEADS[count] + text if count < _LONG else b"s" + encode_length(count) + text


def _encode_bytes(value: bytes) -> bytes:
    return b"b" + encode_length(len(value)) + value


def _encode_decimal(value: Decimal) -> bytes:
    """One text per value; not by ``Decimal.normalize``, which rounds to the precision of the context."""
    sign, digits, exponent = value.as_tuple()
    coefficient = "".join(map(str, digits))
    significant = coefficient.rstrip("0")
    if not isinstance(exponent, int):
        text = "NaN" if value.is_nan() else "-Infinity" if sign else "Infinity"
    else:
        text = f"{'-' * sign}{significant}E{exponent + len(coefficient) - len(significant)}" if significant else "0"
    return b"D" + encode_length(len(text)) + text.encode("ascii")


def _encode_datetime(value: datetime) -> bytes:
    if value.tzinfo is None:
        return _INT64.pack(b"t", _micros(value - _EPOCH))
    offset = value.utcoffset()
    zone = _encode_zone(value.tzinfo, value)
    if offset is None:
        raise MistakeError("fixed offsets and named zones have an offset for each datetime")
    instant = _micros(value.replace(tzinfo=None) - _EPOCH) - _micros(offset)
    if not _FIRST_INSTANT <= instant <= _LAST_INSTANT:
        raise UnencodableKeyError(value, "in UTC it lies outside the years 1 to 9999")
    return _INT64.pack(b"z", instant) + zone


def _encode_time(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    micros = seconds * _SECOND + value.microsecond
    if value.tzinfo is None:
        return _INT64.pack(b"c", micros)
    return _INT64.pack(b"k", micros) + _encode_zone(value.tzinfo, value)


def _encode_zone(zone: tzinfo, value: object) -> bytes:
    """A fixed offset as the offset (labels are no part of its equality), a named zone as its name.

    Where pytz is installed, pyarrow before 25 makes zones of it: a named one has a ``zone``, a fixed offset ``_minutes``.
    """
    if isinstance(zone, timezone):
        return _INT64.pack(b"+", _micros(zone.utcoffset(None)))
    name = zone.key if isinstance(zone, ZoneInfo) else getattr(zone, "zone", None)
    if name == "UTC":
        return _encode_zone(UTC, value)
    if name is not None:
        return _encode_str(name)
    if (minutes := getattr(zone, "_minutes", None)) is None:
        raise UnencodableKeyError(value, f"its zone {zone!r} is neither a fixed offset nor a named ZoneInfo")
    return _encode_zone(timezone(timedelta(minutes=minutes)), value)


def _encode_tuple(value: tuple[object, ...]) -> bytes:
    """As for lists, with the two types that keys are made of dispatched in place."""
    parts = [b"(" + encode_length(len(value))]
    for item in value:
        kind = type(item)
        if kind is str:
            parts.append(_encode_str(item))  # type: ignore[arg-type]
        elif kind is int:
            parts.append(_encode_int(item))  # type: ignore[arg-type]
        else:
            parts.append(encode_key(item))
    return b"".join(parts)


def _encode_dict(value: dict[object, object]) -> bytes:
    entries = {encode_key(key): encode_key(item) for key, item in value.items()}
    if len(entries) < len(value):
        raise UnencodableKeyError(value, "several of its keys have one encoding, as two NaNs do")
    return b"{" + encode_length(len(entries)) + b"".join(key + entries[key] for key in sorted(entries))


def _micros(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * _SECOND + span.microseconds


_FIRST_INSTANT = _micros(datetime.min - _EPOCH)
_LAST_INSTANT = _micros(datetime.max - _EPOCH)

# Subclasses of the time types are not taken for their base: a pandas Timestamp would lose its nanoseconds.
_EXTENSIBLE = frozenset((int, float, str, bytes, bytearray, list, tuple, dict))

_ENCODERS: dict[type, _Encoder] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"T" if value else b"F",
    int: _encode_int,
    float: lambda value: _FLOAT.pack(b"f", value + 0.0) if value == value else _NAN,  # -0.0 + 0.0 is 0.0
    str: _encode_str,
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    Decimal: _encode_decimal,
    date: lambda value: _DAY.pack(b"d", value.toordinal()),
    datetime: _encode_datetime,
    time: _encode_time,
    timedelta: lambda value: b"p" + _encode_int(_micros(value)),
    list: lambda value: b"[" + encode_length(len(value)) + b"".join(map(encode_key, value)),
    tuple: _encode_tuple,
    dict: _encode_dict,
}


# --- decoders ------------------------------------------------------------------------------------------

_Decoder = Callable[[bytes, int], tuple[object, int]]

_READ_INT64 = struct.Struct(">q")
_READ_FLOAT = struct.Struct(">d")
_READ_DAY = struct.Struct(">I")


def decode_key(data: bytes) -> object:
    """Return the key that ``encode_key`` made into these bytes; subclasses come back as builtins."""
    value, end = decode_key_at(data, 0)
    if end != len(data):
        raise UnreadableStateError(f"{data!r} is not one encoded key: it goes on after byte {end}")
    return value


def decode_key_at(data: bytes, at: int) -> tuple[object, int]:
    """Return the key encoded at offset ``at`` and the offset behind it, for keys written one after the other."""
    try:
        return _decode(data, at)
    except (IndexError, KeyError, TypeError, ValueError, ArithmeticError, struct.error) as cause:
        raise UnreadableStateError(f"{data!r} holds no whole encoded key at byte {at}: {cause}") from cause


def _decode(data: bytes, at: int) -> tuple[object, int]:
    return _DECODERS[data[at]](data, at + 1)


def _constant(value: object) -> _Decoder:
    return lambda data, at: (value, at)


def _made(read: Callable[[bytes, int], tuple[Value, int]], make: Callable[[Value], object]) -> _Decoder:

    def decode(data: bytes, at: int) -> tuple[object, int]:
        found, end = read(data, at)
        return make(found), end

    return decode


def _decode_int(data: bytes, at: int) -> tuple[int, int]:
    return _READ_INT64.unpack_from(data, at)[0], at + 8


def _decode_str(data: bytes, at: int) -> tuple[str, int]:
    text, end = _read_content(data, at)
    return text.decode("utf-8", "surrogatepass"), end


def _decode_instant(data: bytes, at: int) -> tuple[datetime, int]:
    micros, end = _decode_int(data, at)
    return _EPOCH + timedelta(microseconds=micros), end


def _zoned(make: Callable[[datetime, tzinfo], object]) -> _Decoder:
    def decode(data: bytes, at: int) -> tuple[object, int]:
        instant, middle = _decode_instant(data, at)
        zone, end = _decode_zone(data, middle)
        return make(instant, zone), end

    return decode


def _decode_zone(data: bytes, at: int) -> tuple[tzinfo, int]:
    if data[at] == ord("+"):
        micros, end = _decode_int(data, at + 1)
        return timezone(timedelta(microseconds=micros)), end
    name, end = _decode_str(data, at + 1)
    try:
        return ZoneInfo(name), end
    except ZoneInfoNotFoundError as cause:
        raise UnreadableStateError(
            f"a key has the time zone {name!r}, which this machine does not know: install the package tzdata"
        ) from cause


def _decode_list(data: bytes, at: int) -> tuple[list[object], int]:
    count, at = _read_length(data, at)
    items = []
    for _ in range(count):
        item, at = _decode(data, at)
        items.append(item)
    return items, at


def _decode_tuple(data: bytes, at: int) -> tuple[tuple[object, ...], int]:
    items, end = _decode_list(data, at)  # keys are tuples: one call less than by _made
    return tuple(items), end


def _decode_dict(data: bytes, at: int) -> tuple[dict[object, object], int]:
    count, at = _read_length(data, at)
    entries = {}
    for _ in range(count):
        key, at = _decode(data, at)
        entries[key], at = _decode(data, at)
    return entries, at


_DECODERS: dict[int, _Decoder] = {
    ord(tag): decoder
    for tag, decoder in {
        "N": _constant(None),
        "T": _constant(True),
        "F": _constant(False),
        "i": _decode_int,
        "I": _made(_read_content, lambda digits: int.from_bytes(digits, "big", signed=True)),
        "f": lambda data, at: (_READ_FLOAT.unpack_from(data, at)[0], at + 8),
        "s": _decode_str,
        "b": _read_content,
        "D": _made(_read_content, lambda text: Decimal(text.decode("ascii"))),
        "d": lambda data, at: (date.fromordinal(_READ_DAY.unpack_from(data, at)[0]), at + 4),
        "t": _decode_instant,
        "z": _zoned(lambda instant, zone: instant.replace(tzinfo=UTC).astimezone(zone)),
        "c": _made(_decode_instant, datetime.time),
        "k": _zoned(lambda instant, zone: instant.time().replace(tzinfo=zone)),
        "p": _made(_decode, lambda micros: timedelta(microseconds=micros)),
        "[": _decode_list,
        "(": _decode_tuple,
        "{": _decode_dict,
    }.items()
}

"""The codec: frames that refuse what they do not know; keys canonical, reversible and prefix-free."""

import struct
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.errors import UnencodableKeyError, UnknownStateFormatError, UnreadableStateError, WindowpaneError
from windowpane.state.codec import decode_int64, decode_key, decode_key_at, encode_int64, encode_key, frame, unframe

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.one_of(
    st.just(UTC),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC"]).map(ZoneInfo),
    st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
AWARE = st.datetimes(datetime(1900, 1, 1), datetime(9999, 12, 30), timezones=ZONES)
TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**63) - 2, 2**63 + 2),
    st.floats(),
    TEXT,
    st.binary(max_size=300),
    st.decimals(),
    st.dates(),
    st.datetimes(),
    AWARE,
    st.times(),
    st.times(timezones=ZONES),
    st.timedeltas(),
)
KEYED = st.one_of(st.none(), st.integers(), TEXT, st.decimals(allow_nan=False), st.dates())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYED, inner, max_size=4),
    ),
    max_leaves=8,
)


def identity(value):
    """What makes two values the same key, written with Python's own comparisons: type, then value."""
    if isinstance(value, float | Decimal) and Decimal(value).is_nan():
        return (type(value), "NaN")
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (datetime, value.astimezone(UTC), zone_name(value.tzinfo))
    if isinstance(value, time) and value.tzinfo is not None:
        return (time, value.replace(tzinfo=None, fold=0), zone_name(value.tzinfo))
    if isinstance(value, datetime | time):
        return (type(value), None, value.replace(fold=0))
    if isinstance(value, list | tuple):
        return (type(value), tuple(map(identity, value)))
    if isinstance(value, dict):
        return (dict, frozenset((identity(key), identity(item)) for key, item in value.items()))
    return (type(value), value)


def zone_name(zone):
    return zone.key if isinstance(zone, ZoneInfo) else zone.tzname(None)


def of_version(version: int, blob: bytes) -> bytes:
    """Return a framed blob as another version of windowpane would have written it."""
    end = 4 + blob[3]
    return blob[:end] + version.to_bytes(2, "big") + blob[end + 2 :]


class TestFrame:
    @given(st.text("abc-", max_size=255), st.binary())
    def test_gives_the_body_back(self, kind, body):
        blob = frame(kind, body)
        assert unframe(kind, blob) == body

    def test_layout_is_fixed(self):
        assert frame("ab", b"xy") == b"\xabWP\x02ab\x00\x01xy"

    def test_refuses_an_unknown_version_in_one_sentence(self):
        with pytest.raises(UnknownStateFormatError) as refusal:
            unframe("page", of_version(258, frame("page", b"rows")))
        assert str(refusal.value) == (
            "state blob of kind 'page': found version 258, where this windowpane reads format version 1; restart with the "
            "windowpane that wrote the checkpoint, or give the query a new one."
        )

    def test_refuses_another_kind_by_name(self):
        with pytest.raises(UnknownStateFormatError, match=r"'page': found kind 'index', version 1"):
            unframe("page", frame("index", b""))

    @pytest.mark.parametrize("blob", [b"", b"x", b"no frame at all", b"\xabWP", b"\xabWP\xffshort"])
    def test_refuses_bytes_without_a_frame(self, blob):
        with pytest.raises(UnknownStateFormatError, match="without a windowpane frame"):
            unframe("page", blob)


class TestInt64:
    @given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2))
    def test_byte_order_is_numeric_order(self, numbers):
        assert [decode_int64(data) for data in sorted(map(encode_int64, numbers))] == sorted(numbers)

    def test_known_values(self):
        assert encode_int64(-(2**63)) == bytes(8)
        assert encode_int64(0) == b"\x80" + bytes(7)
        assert encode_int64(2**63 - 1) == b"\xff" * 8

    @pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
    def test_refuses_what_needs_more_than_64_bits(self, number):
        with pytest.raises(UnencodableKeyError, match=str(number)):
            encode_int64(number)

    def test_refuses_another_length(self):
        with pytest.raises(UnreadableStateError, match="7 bytes"):
            decode_int64(bytes(7))


class TestKeys:
    @given(VALUES)
    def test_decoding_gives_the_key_back(self, value):
        assert identity(decode_key(encode_key(value))) == identity(value)

    @given(VALUES)
    def test_encoding_again_gives_the_same_bytes(self, value):
        data = encode_key(value)
        assert encode_key(decode_key(data)) == data

    @given(VALUES, VALUES)
    def test_equal_keys_and_only_they_have_equal_bytes(self, left, right):
        assert (encode_key(left) == encode_key(right)) == (identity(left) == identity(right))

    @given(st.lists(VALUES, min_size=2, max_size=30))
    def test_no_encoding_is_a_proper_prefix_of_another(self, values):
        encoded = sorted({encode_key(value) for value in values})
        assert not any(after.startswith(before) for before, after in pairwise(encoded))

    @given(VALUES)
    def test_every_proper_prefix_is_refused(self, value):
        data = encode_key(value)
        for end in range(len(data)):
            with pytest.raises(UnreadableStateError):
                decode_key(data[:end])

    @given(st.lists(VALUES, max_size=5))
    def test_concatenated_keys_decode_one_after_the_other(self, values):
        data, at, decoded = b"".join(map(encode_key, values)), 0, []
        while at < len(data):
            value, at = decode_key_at(data, at)
            decoded.append(value)
        assert [identity(value) for value in decoded] == [identity(value) for value in values]

    @given(st.binary(max_size=40))
    def test_arbitrary_bytes_decode_or_are_refused(self, data):
        try:
            value = decode_key(data)
        except UnreadableStateError:
            return
        assert isinstance(value, type(decode_key(encode_key(value))))

    def test_types_are_told_apart(self):
        ones = [1, True, 1.0, Decimal(1), "1", b"1", [1], (1,), timedelta(microseconds=1)]
        assert len({encode_key(one) for one in ones}) == len(ones)

    def test_dates_and_midnights_are_told_apart(self):
        midnights = [date(1970, 1, 1), datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), time(0), 0]
        assert len({encode_key(midnight) for midnight in midnights}) == len(midnights)

    def test_trailing_bytes_are_refused(self):
        with pytest.raises(UnreadableStateError, match="after byte 9"):
            decode_key(encode_key(1) + b"x")


class TestCanonicalForms:
    def test_every_nan_is_one_key(self):
        other = struct.unpack(">d", b"\xff\xf8\x00\x00\x00\x00\x00\x01")[0]
        assert encode_key(other) == encode_key(float("nan"))
        assert encode_key(Decimal("-sNaN12")) == encode_key(Decimal("NaN"))

    def test_negative_zero_is_zero(self):
        assert encode_key(-0.0) == encode_key(0.0)
        assert encode_key(Decimal("-0.00")) == encode_key(Decimal(0))

    @pytest.mark.parametrize("text", ["1.0", "1.00", "10E-1", "0.1E1"])
    def test_equal_decimals_are_one_key(self, text):
        assert encode_key(Decimal(text)) == encode_key(Decimal(1))

    def test_decimals_beyond_the_context_precision_stay_exact(self):
        long = Decimal("1234567890123456789012345678901234567890.12345678")
        assert decode_key(encode_key(long)) == long
        assert encode_key(long) != encode_key(long.normalize())

    def test_dict_order_does_not_matter(self):
        assert encode_key({"b": 1, "a": [2]}) == encode_key({"a": [2], "b": 1})

    def test_bytearray_is_bytes(self):
        assert decode_key(encode_key(bytearray(b"ab"))) == b"ab"

    def test_subclasses_are_their_base(self):
        colour = IntEnum("colour", {"red": 3})
        point = namedtuple("point", "x y")
        assert encode_key((colour.red, point(1, "a"))) == encode_key((3, (1, "a")))

    @pytest.mark.parametrize("utc", [ZoneInfo("UTC"), timezone(timedelta(0)), timezone(timedelta(0), "Z")])
    def test_all_spellings_of_utc_are_one_zone(self, utc):
        moment = datetime(2013, 1, 1, 5, 15, tzinfo=utc)
        assert encode_key(moment) == encode_key(moment.replace(tzinfo=UTC))
        back: Any = decode_key(encode_key(moment))
        assert back.tzname() == "UTC"

    def test_aware_datetimes_keep_instant_and_zone_name(self):
        summer = datetime(2024, 7, 1, 12, tzinfo=BERLIN)
        back: Any = decode_key(encode_key(summer))
        assert back == datetime(2024, 7, 1, 10, tzinfo=UTC)
        assert back.tzinfo.key == "Europe/Berlin"
        assert encode_key(summer) != encode_key(summer.astimezone(UTC))

    def test_the_two_readings_of_a_repeated_hour_are_two_keys(self):
        first = datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
        second = first.replace(fold=1)
        assert encode_key(first) != encode_key(second)
        back: Any = decode_key(encode_key(second))
        assert back.fold == 1

    def test_a_skipped_wall_time_is_its_instant(self):
        skipped = datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN)
        back: Any = decode_key(encode_key(skipped))
        assert back == datetime(2024, 3, 31, 3, 30, tzinfo=BERLIN)
        assert encode_key(back) == encode_key(skipped)

    def test_offset_labels_are_no_part_of_the_key(self):
        plain, labelled = timezone(timedelta(hours=-5)), timezone(timedelta(hours=-5), "EST")
        assert encode_key(time(9, tzinfo=plain)) == encode_key(time(9, tzinfo=labelled))


class TestRefusals:
    @pytest.mark.parametrize("value", [{1}, object, 1j, range(3)])
    def test_unknown_types_are_named(self, value):
        with pytest.raises(UnencodableKeyError) as refusal:
            encode_key(("LGA", value))
        assert repr(value) in str(refusal.value)
        assert type(value).__name__ in str(refusal.value)
        assert isinstance(refusal.value, WindowpaneError)

    def test_subclasses_of_time_types_are_refused(self):
        class Stamp(datetime):
            """Stands for pandas.Timestamp, whose nanoseconds would be lost."""

        with pytest.raises(UnencodableKeyError, match="Stamp"):
            encode_key(Stamp(2024, 1, 1))

    def test_a_dict_with_two_nans_as_keys_is_refused(self):
        with pytest.raises(UnencodableKeyError, match="one encoding"):
            encode_key({float("nan"): 1, float("-nan"): 2})

    def test_an_instant_outside_the_calendar_is_refused(self):
        with pytest.raises(UnencodableKeyError, match="years 1 to 9999"):
            encode_key(datetime.min.replace(tzinfo=timezone(timedelta(hours=1))))

    def test_zones_of_pytz_are_those_of_their_names_and_offsets(self):
        pytz = pytest.importorskip("pytz")
        instant = datetime(2024, 7, 1, 12, tzinfo=UTC)
        pairs = (
            (pytz.utc, UTC),
            (pytz.timezone("Europe/Berlin"), BERLIN),
            (pytz.FixedOffset(90), timezone(timedelta(minutes=90))),
        )
        for zone, same in pairs:
            assert encode_key(instant.astimezone(zone)) == encode_key(instant.astimezone(same))

    def test_a_zone_without_a_name_is_refused(self, tmp_path):
        header = b"TZif" + b"\0" * 16 + struct.pack(">6L", 0, 0, 0, 0, 1, 4)
        (tmp_path / "zone").write_bytes(header + struct.pack(">lbB", 0, 0, 0) + b"UTC\0")
        with (tmp_path / "zone").open("rb") as file:
            nameless = ZoneInfo.from_file(file)
        with pytest.raises(UnencodableKeyError, match="neither a fixed offset nor a named ZoneInfo"):
            encode_key(datetime(2024, 1, 1, tzinfo=nameless))

    def test_a_zone_this_machine_lacks_is_named(self):
        data = encode_key(datetime(2024, 1, 1, tzinfo=BERLIN)).replace(b"Berlin", b"Nowher")
        with pytest.raises(UnreadableStateError, match=r"'Europe/Nowher'.*tzdata"):
            decode_key(data)

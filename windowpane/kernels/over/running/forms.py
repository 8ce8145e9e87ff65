"""Which calls run, and how: the running form of a call, by its function, frame and the type of its argument."""

from __future__ import annotations

import pyarrow as pa

from windowpane.kernels.keys.ordered_codes import has_codes, has_ranks
from windowpane.kernels.over.running.calls import (
    DenseRank,
    Rank,
    RowNumber,
    Running,
    RunningCount,
    RunningExtreme,
    RunningFloatMean,
    RunningFloatSum,
    RunningIntegerMean,
    RunningIntegerSum,
)
from windowpane.kernels.over.running.decimals import RunningDecimalMean, RunningDecimalSum
from windowpane.kernels.over.running.moments import RunningMoments
from windowpane.kernels.over.running.values import RunningFirst, RunningLast, RunningRankedExtreme
from windowpane.windowing.over.frames import Exclude, Side, Units
from windowpane.windowing.over.spec import RUNNING_NUMBERING, OverCall

_NUMBERING: dict[str, type[Running]] = {"row_number": RowNumber, "rank": Rank, "dense_rank": DenseRank}
_MOMENTS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
_VALUES: dict[str, type[Running]] = {
    "first_value": RunningFirst,
    "first": RunningFirst,
    "any_value": RunningFirst,
    "last_value": RunningLast,
    "last": RunningLast,
}


def running_form(call: OverCall, kind: pa.DataType | None) -> Running | None:
    """Return the running form of a call over an argument of type ``kind``, ``None`` if it has none."""
    if call.function in RUNNING_NUMBERING:
        return _NUMBERING[call.function](call, kind)
    if not _runs(call):
        return None
    if call.function == "count" and len(call.arguments) <= 1:
        return RunningCount(call, kind)
    if kind is None or len(call.arguments) != 1:
        return None
    form = _form(call, kind)
    return None if form is None else form(call, kind)


def _runs(call: OverCall) -> bool:
    frame = call.frame
    if frame is None or call.distinct or call.ignore_nulls or frame.exclude is not Exclude.NO_OTHERS:
        return False
    ends = (Side.PRECEDING, Side.CURRENT_ROW)
    return frame.units is not Units.SESSION and frame.start.side is Side.UNBOUNDED_PRECEDING and frame.end.side in ends


def _form(call: OverCall, kind: pa.DataType) -> type[Running] | None:
    if call.function in ("sum", "avg"):
        return _of_numbers(kind, is_sum=call.function == "sum")
    if call.function in ("min", "max", "bool_and", "bool_or"):
        return RunningExtreme if has_codes(kind) else RunningRankedExtreme if has_ranks(kind) else None
    if call.function in _MOMENTS:
        return RunningMoments
    takes_every_row = call.filter is None and not dict(call.parameters).get("ignore_nulls", False)
    return _VALUES.get(call.function) if takes_every_row else None


def _of_numbers(kind: pa.DataType, is_sum: bool) -> type[Running] | None:
    if pa.types.is_signed_integer(kind):
        return RunningIntegerSum if is_sum else RunningIntegerMean
    if pa.types.is_floating(kind):
        return RunningFloatSum if is_sum else RunningFloatMean
    if pa.types.is_decimal128(kind) and has_codes(kind):
        return RunningDecimalSum if is_sum else RunningDecimalMean
    return None

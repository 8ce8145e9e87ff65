"""Errors of programs: raised where one is built, before rows are read."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from windowpane.errors.base import WindowpaneError


class InvalidDurationError(WindowpaneError, ValueError):
    """A duration that is no duration: unknown unit, wrong type, finer than a microsecond, beyond int64."""

    def __init__(self, duration: object, reason: str) -> None:
        super().__init__(
            f"{duration!r} is not a duration: {reason}. Write text such as '10 minutes' or '1 hour 30 minutes' (units of "
            "fixed length up to weeks), a timedelta, or an integer of microseconds."
        )


class InvalidSpecError(WindowpaneError, ValueError):
    """A window assigner, trigger, evictor or plan whose parameters cannot work; refused when it is built."""


class MissingWatermarkError(InvalidSpecError, page="how-to/who-holds-the-watermark-back.md"):
    """A stream without a watermark, of which nothing would ever be final."""

    def __init__(self, who: str, way_out: str) -> None:
        super().__init__(f"{who} no watermark, so no row would ever be final: {way_out}.")


class DuplicateColumnError(InvalidSpecError):
    """Two columns of a result have one name, or two of the input that a name may mean."""

    def __init__(self, columns: Iterable[str], way_out: str, who: str = "the result would have") -> None:
        named = dict.fromkeys(map(repr, columns))
        super().__init__(f"{who} {', '.join(named)}{' twice' if len(named) == 1 else ', which are one name'}. {way_out}")

    @classmethod
    def refuse_alike(
        cls, names: Iterable[str], way_out: str, who: str = "the result would have", fold: Callable[[str], str] = str.lower
    ) -> None:
        """Refuse names that are the same to who compares them, without regard to case if not said otherwise."""
        folds = [(name, fold(name)) for name in names]
        counts = Counter(folded for _, folded in folds)
        if alike := [name for name, folded in folds if counts[folded] > 1]:
            raise cls(alike, way_out, who)


class EmptyIntervalError(InvalidSpecError):
    """The bounds of an interval join that no two rows can meet."""

    def __init__(self, lower: object, upper: object) -> None:
        super().__init__(
            f"within({lower!r}, {upper!r}): no time of a right row is both after the lower and before the upper bound. The "
            "bounds are added to the time of the left row, the lower one first: within('-5 minutes', '1 minute')."
        )


class UnboundedIntervalError(InvalidSpecError):
    """An interval join without one of its bounds, whose state would grow for ever."""

    def __init__(self, bound: str) -> None:
        super().__init__(
            f"within: the {bound} bound is None, so every row would be kept for ever. Give a duration; for the latest row before "
            "another, however old, use wp.as_of."
        )


class UnsupportedJoinError(InvalidSpecError):
    """A kind of join that has no meaning for how rows are matched."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}.")


class UnknownChangeError(WindowpaneError, ValueError):
    """A row of a changelog that says of itself something else than what a changelog says."""

    def __init__(self, column: str, word: object, words: Sequence[str]) -> None:
        super().__init__(
            f"a row of the right side of the join has {column} = {word!r}, but it is one of {', '.join(map(repr, words))}. "
            "Translate it before the join, or drop the column if every row is a version."
        )


class MixedBoundednessError(InvalidSpecError):
    """A stream and a static DataFrame in one join."""

    def __init__(self, static: str) -> None:
        stream = "left" if static == "right" else "right"
        super().__init__(
            f"the {static} side of the join is static and the {stream} one is a stream. Join a stream with a table by Spark's "
            "stream-static join, stream_df.join(table_df, 'key'): it looks every row up when it comes, and needs no state."
        )


class WatermarkPolicyError(InvalidSpecError, page="how-to/who-holds-the-watermark-back.md"):
    """Spark is set to take the greatest watermark of several inputs, under which results of a join are not final."""

    def __init__(self, policy: str) -> None:
        super().__init__(
            f"spark.sql.streaming.multipleWatermarkPolicy is {policy!r}: the watermark would be that of the faster side, and "
            "rows of the slower one be lost. A join needs 'min', Spark's default: unset it, or set it to 'min' before the join."
        )


class ChangelogInputError(InvalidSpecError):
    """A changelog where a join takes rows by the clock or by arrival."""

    def __init__(self, side: str, column: str) -> None:
        super().__init__(
            f"the {side} side of the join is a changelog (it has {column!r}), and by the clock or by arrival a row is joined "
            "before a change takes it back. Join by event time, or drop the column if all rows are inserts."
        )


class KeyTypeError(InvalidSpecError, TypeError):
    """Keys of a join whose types have no common type."""

    def __init__(self, left: str, left_type: str, right: str, right_type: str) -> None:
        super().__init__(
            f"on: {left!r} of the left side is {left_type}, {right!r} of the right side is {right_type}. Spark widens neither "
            "to the other without loss: cast one of them before the join."
        )


class ConditionError(WindowpaneError, ValueError):
    """The condition of a join or a pattern that cannot be computed on rows."""

    def __init__(self, condition: object, reason: str) -> None:
        super().__init__(
            f"the condition {condition!r}: {reason}. It is computed from operators, constants and columns: whatever else it "
            "needs, compute with Spark before, as a column."
        )


class TileMismatchError(InvalidSpecError):
    """A rolling window or a step that is no multiple of the length of its tiles."""

    def __init__(self, what: str, hop: str, nearest: str) -> None:
        reason = f"The nearest are {nearest}; .hop(...) sets other tiles." if nearest else "Both must be longer than nothing."
        super().__init__(f"{what} is no multiple of {hop}, the length of its tiles. {reason}")


class EdgeError(InvalidSpecError):
    """An edge of rolling windows that does not fit how they are emitted."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} do not go together: each row is to have the rows of its own window. Use .edge('exact').")


class UnboundedStateError(InvalidSpecError, page="how-to/rolling-features.md"):
    """An aggregate over a long rolling window that keeps every value, or a pattern that waits with every row to come."""

    def __init__(self, name: str, aggregate: object, length: str) -> None:
        super().__init__(
            f"{name}={aggregate!r} over {length} keeps every value of that time for every key. Use an approximate one, such as "
            "approx_count_distinct or approx_quantile, a window of up to a day, or allow it by .unbounded_state()."
        )

    @classmethod
    def of_pattern(cls, pattern: object, part: object) -> UnboundedStateError:
        """Return the error of a part of a pattern that takes or passes over any number of rows, without a bound of time."""
        error = cls.__new__(cls)
        InvalidSpecError.__init__(
            error,
            f"pattern '{pattern}': '{part}' takes any row, so an attempt waits with all that come, for ever. Bound it by "
            ".within('1 hour'), or give the variable a condition.",
        )
        return error


class UnboundedPatternWarning(UserWarning):
    """A pattern without a bound of time holds as many rows of a key as its loops take."""

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"pattern '{pattern}' has a loop and no bound: a key holds its rows for as long as they match. .within('1 hour') "
            "bounds the state."
        )


class InvalidFrameError(InvalidSpecError):
    """A window frame that SQL has no meaning for; refused when it is built."""


class NeverClosesError(InvalidSpecError, page="how-to/why-is-my-window-still-open.md"):
    """A window that can never emit on close: a call needs rows that no watermark ever completes."""

    def __init__(self, call: object, reason: str) -> None:
        super().__init__(f"{call}: {reason}, so a row would never be emitted. Bound the frame, or emit on update.")


class NonMergingTriggerError(InvalidSpecError):
    """A trigger that cannot merge was put on an assigner whose windows merge (sessions)."""

    def __init__(self, assigner: object, trigger: object) -> None:
        super().__init__(
            f"{assigner!r} merges windows, but {trigger!r} cannot merge its state. Use a trigger whose can_merge() is true "
            "(event time, processing time, count, continuous), or give yours can_merge and on_merge. A trigger that overrides "
            "on_element needs an on_merge of its own, which carries over what it keeps and may call super().on_merge."
        )


class UnknownColumnError(WindowpaneError, ValueError):
    """A column that the DataFrame does not have."""

    def __init__(self, column: object, role: str, available: Iterable[str]) -> None:
        names = [str(each) for each in available]
        close = difflib.get_close_matches(str(column), names, n=1, cutoff=0.5)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        whole, dot, field = str(column).partition(".")
        if dot and whole in names:
            meant = f" For a field of {whole!r} make a column before: .withColumn({field!r}, F.col({column!r}))."
        super().__init__(f"{role}: there is no column {column!r}; the DataFrame has {names}.{meant}")


class UnknownNameError(WindowpaneError, AttributeError):
    """A method or name that something of windowpane does not have, such as one of PySpark's or Flink's."""

    def __init__(self, owner: str, name: str, way_out: str) -> None:
        super().__init__(f"{owner} has no {name!r}: {way_out}" if way_out else f"{owner} has no {name!r}.")


class UnknownArgumentError(InvalidSpecError, TypeError):
    """An argument that a function which begins a program does not have."""

    def __init__(self, function: str, name: str, way_out: str) -> None:
        super().__init__(f"{function} has no argument {name!r}: give {way_out}.")


class NoDataFrameError(InvalidSpecError, TypeError):
    """Something else than a DataFrame of Spark where a program begins."""

    def __init__(self, given: str, way_out: str) -> None:
        super().__init__(f"a program reads a DataFrame of Spark, and was given {given}: {way_out}.")


class UnsupportedTypeError(WindowpaneError, TypeError):
    """A column of a type that cannot pass through Arrow, or cannot play the role it was given."""


class AggregateTypeError(WindowpaneError, TypeError):
    """A built-in aggregate has no meaning for the types of its arguments; refused when the plan is built."""

    def __init__(self, aggregate: object, types: object, wanted: str) -> None:
        super().__init__(f"{aggregate} got {types}, but takes {wanted}. Cast the column, or aggregate another one.")


class UndeclaredSideOutputError(WindowpaneError, KeyError):
    """A function wrote to, or a caller read, a side output that is not declared."""

    def __init__(self, tag: object, declared: object) -> None:
        super().__init__(
            f"side output {tag!r} is not declared; declared are {declared!r}. Declare it with .side_output(OutputTag(...)) (or "
            ".side_output_late_data(...) for late rows) before the function is set."
        )

    def __str__(self) -> str:
        """Return the message (KeyError would print its repr)."""
        return str(self.args[0])


class UnknownOutputError(UndeclaredSideOutputError):
    """A sink was given to an output that a program does not have."""

    def __init__(self, name: str, outputs: Sequence[str], instead: str) -> None:
        close = difflib.get_close_matches(name, outputs, n=1, cutoff=0.5)
        meant = f"Say {instead}." if instead else f"Did you mean {close[0]!r}?" if close else ""
        WindowpaneError.__init__(
            self,
            f"start({name}=...): there is no output {name!r}; outputs are {', '.join(map(repr, outputs))}. "
            + (meant or "Late rows are one after .side_output_late_data('late'), others after .side_output(OutputTag(...))."),
        )


class MissingExtraError(WindowpaneError, ModuleNotFoundError):
    """A package that is not installed, of an extra of windowpane."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed. It comes with an extra: pip install 'windowpane[{extra}]'.")
        self.name = package

    @classmethod
    def unless(cls, extra: str, *packages: str) -> None:
        """Look for the packages of an extra, without importing them.

        Raises:
            MissingExtraError: naming the first that is not there.
        """
        for package in packages:
            if find_spec(package) is None:
                raise cls(package, extra)


class MissingJarError(WindowpaneError, page="how-to/running-on-a-cluster.md"):
    """Spark was to read by a connector whose jar it does not have."""

    def __init__(self, package: str, version: str) -> None:
        super().__init__(
            f"Spark {version} has no such connector: start it with its jar, as in spark-submit --packages {package}:<version> or "
            f".config('spark.jars.packages', '{package}:<version>'); or say through='arrow', which needs no jar."
        )
        self.package = package


class WorkerPythonError(WindowpaneError, page="how-to/running-on-a-cluster.md"):
    """Spark's workers on this machine run a Python that cannot run windowpane."""

    def __init__(self, executable: str, reason: str, here: str) -> None:
        super().__init__(
            f"Spark's workers would run {executable!r}, but {reason}. Before the session is made, say "
            f"os.environ['PYSPARK_PYTHON'] = sys.executable (here {here!r}), or activate the virtual environment."
        )
        self.executable = executable


class NoArchiveError(WindowpaneError, page="performance/settings.md"):
    """The JVM of Spark has written no archive of its classes, see ``windowpane share-classes``."""

    def __init__(self, archive: str) -> None:
        super().__init__(f"the JVM has written no {archive}: HotSpot does, from Java 13 on, into a folder that it may write.")


class PatternError(InvalidSpecError, page="how-to/patterns.md"):
    """The text of a pattern is none, or a part of it cannot be run.

    Attributes:
        text: the pattern.
        column: where, from 1 on.
    """

    def __init__(self, text: str, column: int, reason: str) -> None:
        """Say where and why."""
        super().__init__(f"pattern, column {column}: {reason}.\n  {text}\n  {' ' * (column - 1)}^")
        self.text, self.column = text, column
        self.reason = reason

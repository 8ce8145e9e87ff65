"""Errors of checkpoints and state: raised where a query restarts."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from windowpane.errors.base import WindowpaneError

_CLIENT = "py4j"
"""The package by which Python speaks to the JVM; here nothing may import it."""


class ChangedPlanError(WindowpaneError, page="how-to/changing-a-query.md"):
    """A restart found state that another program wrote: its plan or schema differs from the one that runs now."""

    def __init__(
        self,
        differences: dict[str, tuple[str | None, str | None]],
        report: Sequence[str] = (),
        accepted_by: str = "",
    ) -> None:
        """Name each part that differs, as it was and as it is.

        Args:
            differences: the parts.
            report: what the change of each means, a few lines each; those of ``differences`` if there are none.
            accepted_by: the word of ``start(changes=...)`` that takes them all, if one does.
        """
        lines = report or [f"  {part}: was {was or 'absent'}, is {now or 'absent'}" for part, (was, now) in differences.items()]
        goes_on = f"result.start(..., changes={accepted_by!r})  # goes on with the state as said above\n" if accepted_by else ""
        cannot = "" if accepted_by else "; its state cannot be read by this one"
        super().__init__(
            f"the checkpoint was written by a different program{cannot}:\n"
            + "\n".join(lines)
            + "\nNothing was changed in it. Restore these parts, or say one of\n"
            + goes_on
            + "result.start(..., checkpoint='a new folder')  # begins anew, from as far back as its windows reach\n"
            + "result.start(..., checkpoint='a new folder', history=past, cut='2026-01-01')  # begins with rows of before"
        )
        self.differences = differences


class MisplacedStateError(WindowpaneError):
    """Two that belong together are apart: a checkpoint and its sink, a store of SQL and the folder or file with its state.

    One of them was restored from an older copy, removed, or belongs to another one.
    """


class MissingCheckpointError(WindowpaneError, page="how-to/monitoring.md"):
    """A place that was to be looked at holds no checkpoint of a query."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"there is no checkpoint at {location!r}: a folder with Spark's file `metadata` in it. Say the location that "
            "result.start(..., checkpoint=...) was given; what is in a remote store is said with its scheme, such as s3://."
        )
        self.location = location


class NotAFolderError(WindowpaneError, OSError):
    """A checkpoint, a sink or the state of a session was to be a folder, and there is a file."""

    def __init__(self, role: str, folder: str, file: str) -> None:
        super().__init__(f"{role} {folder!r} is to be a folder, and {file!r} is a file. Say another path. Nothing was written.")
        self.folder = folder

    @classmethod
    def refuse(cls, role: str, folder: Path) -> None:
        """Refuse a folder of this machine that is a file, or below one."""
        found = next((path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()), None)
        if found is not None and found.is_file():
            raise cls(role, str(folder), str(found))


class UnreachableCheckpointError(WindowpaneError):
    """A query was to start with a checkpoint on a file system that its Spark does not have, or does not reach."""

    def __init__(self, checkpoint: str, reason: str) -> None:
        super().__init__(
            f"checkpoint {checkpoint!r}: {reason}. Checkpoints are Spark's own: for s3a:// it needs the jar hadoop-aws of its "
            "Hadoop's version, for gs:// gcs-connector, for abfss:// hadoop-azure, with spark-submit --packages or in "
            "spark.jars.packages, and the credentials in spark.hadoop.fs.*. Without them keep it on a disk that lasts, and copy "
            "it with windowpane checkpoint copy. Nothing was started."
        )
        self.checkpoint = checkpoint


class HistoryAfterStartError(WindowpaneError):
    """A history was given to rolling features whose checkpoint has begun already."""

    def __init__(self, checkpoint: str | None = None) -> None:
        which = "this checkpoint" if checkpoint is None else f"checkpoint {checkpoint!r}"
        super().__init__(
            f"history= is what a query begins with, and {which} has begun already. To continue from it, leave history= and cut= "
            "out: a history that it began with is in its state. To begin with another one, start with a new checkpoint."
        )
        self.checkpoint = checkpoint


class MissingHistoryError(WindowpaneError):
    """A checkpoint was to begin with a history, and is started without it before a batch was committed."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            f"checkpoint {checkpoint!r} was started with history=, and has not committed a batch yet: its state is not there. "
            "Start it with the same history= and cut= once more, or begin without a history in a new checkpoint."
        )
        self.checkpoint = checkpoint


class EndedStreamError(WindowpaneError):
    """A query was started with the checkpoint of a stream that ``flush_at_end`` has ended."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            f"checkpoint {checkpoint!r} belongs to a stream that flush_at_end=True has ended: all of its windows are written, "
            "and rows that came now would be late for them. To read the whole input again, start with a new checkpoint and new "
            "outputs. Where more rows will arrive, leave flush_at_end out: later rows, or heartbeats, close the windows."
        )
        self.checkpoint = checkpoint


class RunningCheckpointError(WindowpaneError):
    """A query was started with the checkpoint of a query that runs."""

    def __init__(self, checkpoint: str, name: str | None, query: str) -> None:
        super().__init__(
            f"checkpoint {checkpoint!r} belongs to query {name or query!r}, which runs in this session: Spark would stop it to "
            f"start this one. Stop it before, spark.streams.get({query!r}).stop(), or give this query a checkpoint of its own. "
            "To have Spark stop it, set spark.sql.streaming.stopActiveRunOnRestart to true."
        )
        self.checkpoint, self.query = checkpoint, query


class RepartitionedCheckpointError(WindowpaneError, page="how-to/changing-a-query.md"):
    """Spark's offline repartition has rewritten a checkpoint: its keys are in other buckets than rows are sent to now."""

    def __init__(self, written: int, partitions: int) -> None:
        super().__init__(
            f"the state was written over {written} state partitions, and the checkpoint has been repartitioned to {partitions}: "
            "windowpane spreads keys by that number, so rows would not find the state of their keys. Go on from a copy of the "
            f"checkpoint made before, or start with a new checkpoint location and spark.sql.shuffle.partitions = {partitions}. "
            "The refused batch has written nothing."
        )
        self.written = written
        self.partitions = partitions


class UncommittedBatchError(WindowpaneError):
    """A checkpoint was to be copied for another query while a batch of it had begun and was not committed."""

    def __init__(self, checkpoint: str, batch: int) -> None:
        super().__init__(
            f"batch {batch} of checkpoint {checkpoint!r} has begun and is not committed: a sink may have its results, which "
            "another query would write again. Start the query once more until the batch is committed, or say same_query=True "
            "(--same-query) for a copy that goes on in its place."
        )
        self.checkpoint, self.batch = checkpoint, batch


class UnknownKeyError(WindowpaneError):
    """A key was to be taken out of a checkpoint that has no state of it."""

    def __init__(self, key: tuple[object, ...]) -> None:
        super().__init__(
            f"no operator of the checkpoint has state of key {', '.join(map(repr, key))}: give a value for each part of the key, "
            "in the order of key_by(...). Nothing was written."
        )
        self.key = key


class UnmovableStateError(WindowpaneError, page="how-to/changing-a-query.md"):
    """State of a checkpoint cannot be spread over other buckets, or keys be taken out of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"keys of this checkpoint cannot be moved: {reason}. Nothing was written, and it goes on as it is. "
            "A new one, with another number of buckets, begins from as far back as its windows reach."
        )
        self.reason = reason


class UnknownStateFormatError(WindowpaneError):
    """A state blob is of another kind, or of a format version this windowpane does not read."""

    def __init__(self, kind: str, found: str, version: int) -> None:
        super().__init__(
            f"state blob of kind {kind!r}: found {found}, where this windowpane reads format version {version}; restart with the "
            "windowpane that wrote the checkpoint, or give the query a new one."
        )
        self.kind = kind
        self.found = found
        self.version = version


class UnsafeStateError(WindowpaneError):
    """State holds, or was to hold, an object that is no plain value, where ``windowpane.safe_state`` is set."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"state holds an object of {name}, and windowpane.safe_state is set: to read an object of a class that is not "
            "windowpane's may run code that somebody wrote into the checkpoint. It was not imported, and nothing was changed. "
            "Let functions keep values, tuples, lists and dicts; or unset windowpane.safe_state, where nobody but you can write "
            "to the checkpoint."
        )
        self.name = name


class UnreadableDescriptionError(WindowpaneError):
    """A part of a program in a checkpoint is code of the user's that is not found by its name, or a spec that is no dataclass."""

    def __init__(self, name: str) -> None:
        """Name the part and the way out."""
        super().__init__(
            f"{name} is part of the program that wrote the checkpoint, and does not read back: it is not there under this name, "
            "or is made in a way that a checkpoint does not know. Put it back where it was; make yours a frozen dataclass."
        )
        self.name = name


class UnreadableStateError(WindowpaneError, page="how-to/monitoring.md"):
    """State bytes do not decode: they are damaged, incomplete, or need something this machine lacks."""


class PageLimitError(WindowpaneError, ValueError):
    """A page limit of SortedPages is below one row or one byte."""


class SparkGoneError(WindowpaneError, ConnectionError):
    """The JVM of a Spark session does not answer any more: it was killed, or it ran out of memory."""

    def __init__(self) -> None:
        super().__init__(
            "the JVM of this Spark session does not answer: it was killed, or it ran out of memory (then its log says so, and "
            "spark.driver.memory helps). What was committed is kept, by the checkpoint of a query and by the store of a SQL "
            "session. Close SQL sessions, call SparkSession.getActiveSession().stop() or begin a new process, make a new Spark "
            "session, and start again with the same checkpoint, or the same store."
        )

    @classmethod
    def explains(cls, error: BaseException) -> bool:
        """Whether an error, or one that led to it, is that nobody answers at the other end."""
        return any(_is_lost_connection(each) for each in _chain(error))

    @classmethod
    @contextmanager
    def instead(cls) -> Iterator[None]:
        """Raise this error in place of those of the connection."""
        try:
            yield
        except Exception as error:
            if cls.explains(error):
                raise cls() from error
            raise


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, each once: one that is raised again has itself among them."""
    seen = set[int]()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        yield at
        seen.add(id(at))
        at = at.__cause__ or at.__context__


def _is_lost_connection(error: BaseException) -> bool:
    if not isinstance(error, ConnectionError) and type(error).__name__ != "Py4JNetworkError":
        return False
    frames = traceback.walk_tb(error.__traceback__)
    return any(str(frame.f_globals.get("__name__")).split(".")[0] == _CLIENT for frame, _ in frames)

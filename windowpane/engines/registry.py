"""The registry: every engine there is, by the kind of programs it runs, the fastest first, the reference last.

A new engine is a class in one of the lists; nothing else names all engines. Only planning reads this module: a worker is sent the
class of its engine, and imports no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from windowpane.engines.deduplication.engine import DeduplicationEngine
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.deduplication.reference import DeduplicationReferenceEngine
from windowpane.engines.filling.engine import FillingEngine
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.filling.reference import FillingReferenceEngine
from windowpane.engines.join.as_of import JoinAsOfEngine
from windowpane.engines.join.by_arrival import JoinByArrivalEngine
from windowpane.engines.join.interval import JoinIntervalEngine
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.reference import JoinReferenceEngine
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.over.close import OverCloseEngine
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.over.update import OverUpdateEngine
from windowpane.engines.panes.engine import PanesEngine
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.patterns.text import PatternTextEngine
from windowpane.engines.program import BucketProgram, Program
from windowpane.engines.rolling.engine import RollingEngine
from windowpane.engines.rolling.point_in_time import PointInTimeEngine, PointInTimeReferenceEngine
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.engines.rolling.waiting_labels import WaitingLabelsEngine, WaitingLabelsReferenceEngine
from windowpane.engines.row.engine import RowEngine
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.engines.sessions.closed import ClosedSessionsEngine
from windowpane.engines.sessions.closed_reference import ClosedSessionsReferenceEngine
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.engines.settling.engine import SettlingEngine
from windowpane.engines.settling.program import SettlingProgram
from windowpane.engines.settling.reference import SettlingReferenceEngine
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.engines.spec import BucketEngine

P = TypeVar("P", bound=BucketProgram)

_BY_KIND: Final[dict[type, Sequence[type[BucketEngine[Any]]]]] = {
    Program: (
        SlicesEngine,
        SessionsEngine,
        PanesEngine,
        RowEngine,
        ClosedSessionsEngine,
        ClosedSessionsReferenceEngine,
        ReferenceEngine,
    ),
    OverProgram: (OverUpdateEngine, OverCloseEngine, OverReferenceEngine),
    RollingProgram: (RollingEngine, RollingReferenceEngine),
    PointInTimeProgram: (PointInTimeEngine, WaitingLabelsEngine, WaitingLabelsReferenceEngine, PointInTimeReferenceEngine),
    DeduplicationProgram: (DeduplicationEngine, DeduplicationReferenceEngine),
    FillingProgram: (FillingEngine, FillingReferenceEngine),
    SettlingProgram: (SettlingEngine, SettlingReferenceEngine),
    JoinProgram: (JoinIntervalEngine, JoinAsOfEngine, JoinByArrivalEngine, JoinWindowEngine, JoinReferenceEngine),
    PatternProgram: (PatternTextEngine, PatternReferenceEngine),
}


def engines_for(program: P) -> Sequence[type[BucketEngine[P]]]:
    engines = _BY_KIND[type(program)]
    return engines[-1:] if isinstance(program, Program | OverProgram) and program.key_delay is not None else engines


def engine_named(name: str) -> type[BucketEngine[Any]]:
    return next(each for engines in _BY_KIND.values() for each in engines if each.name == name)

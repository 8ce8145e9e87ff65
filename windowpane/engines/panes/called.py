"""Triggers that are called: once for all panes that are alike, or row by row where they look at rows.

The number of a pane is that of its *standing* (see ``standings``); a row of the pane store has the standing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from windowpane import pickles
from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import replaced
from windowpane.arrays.values import Value
from windowpane.engines.panes.standings import Standings, fires_by_clocks_alone, row_reader, waits_for_clocks
from windowpane.engines.panes.store import STANDING
from windowpane.engines.panes.trigger_program import NEW, Arrived, Opened, TriggerProgram
from windowpane.engines.panes.windows import Elements
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import UserFunctionError, WindowpaneError
from windowpane.hidden_columns import TIME
from windowpane.kernels.grouping.running_positions import run_ends
from windowpane.kernels.keys.dense_codes import combined, dense_codes, first_rows, number_codes
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import ContinuousEventTimeTrigger
from windowpane.windowing.triggers.continuous import ContinuousTrigger
from windowpane.windowing.windows import Window


class Called(TriggerProgram):
    """Any trigger of windowpane's."""

    has_timers = True
    keeps_empty = True

    def __init__(self, program: Program) -> None:
        self._program = program
        self.standings = Standings(program.spec)
        spec = program.spec
        self.appends = waits_for_clocks(spec)
        self.folds_rows = fires_by_clocks_alone(spec)
        waits_for_end = self.appends and not isinstance(spec.firing_trigger, ContinuousTrigger)
        folds_all = waits_for_end and spec.evictor is None and not spec.refines_each
        self.is_ordered = not self.folds_rows and not folds_all
        self._looks_at_rows = not self.appends and row_reader(spec.trigger) is not None

    def numbers(self, rows: pa.Table) -> Integers:
        return self.standings.of(rows[STANDING])

    def beside(self, rows: pa.Table, numbers: Integers) -> pa.Table:
        return rows.append_column(STANDING, self.standings.column(numbers))

    def first_times(self, numbers: Integers, last_instants: Integers, event_time: bool) -> Integers:
        return self.standings.first_times(numbers, last_instants, event_time)

    def are_nothing(self, numbers: Integers) -> Mask:
        present, codes = np.unique(numbers, return_inverse=True)
        are_nothing = [self.standings.is_nothing(number, self.appends) for number in present.tolist()]
        return np.array(are_nothing, bool)[codes]

    def in_words(self, numbers: Integers) -> pa.Array:
        return pa.array(self.standings.in_words(numbers), pa.string())

    def begun(self, window: Window) -> int:
        return self.standings.begun(window)

    def set_clocks(self, watermark: int, now: int) -> None:
        self.standings.set_clocks(watermark, now)

    def take(self, arrived: Arrived, numbers: Integers) -> tuple[Integers, Integers]:
        return self._row_by_row(arrived, numbers) if self._looks_at_rows else self._by_kind(arrived, numbers)

    def opened(self, elements: Elements, window: Callable[[int], Window]) -> Opened:
        ends, trigger = elements.ends, self._program.spec.firing_trigger
        kinds = number_codes(ends)
        times = np.full(len(ends), MIN)
        if isinstance(trigger, ContinuousEventTimeTrigger):  # it counts from the time of a row, rounded as Java divides
            times = elements.rows[TIME].to_numpy()[elements.numbers]
            times = times - np.fmod(times, trigger.interval)
            kinds = combined(kinds, dense_codes([pa.chunked_array([pa.array(times)])], len(ends)).codes)
        at = first_rows(kinds)
        answers = [
            self.standings.after_row(NEW, window(end), time)
            for end, time in zip(ends[at].tolist(), times[at].tolist(), strict=True)
        ]
        numbers, bits = (np.array(column, np.int64) for column in zip(*answers, strict=True))
        return Opened(numbers[kinds], bits[kinds], at)

    def _by_kind(self, arrived: Arrived, standings: Integers) -> tuple[Integers, Integers]:
        groups, positions = arrived.by_pane.groups, arrived.by_pane.positions
        if not len(groups):
            return np.zeros(0, np.int64), standings
        lasts = run_ends(groups)
        panes, counts = groups[lasts], positions[lasts] + 1
        kinds = kinds_of(standings[panes], arrived.ends[panes])
        at = first_rows(kinds)
        most = np.zeros(len(at), np.int64)
        np.maximum.at(most, kinds, counts)
        numbers, bits = list[int](), list[int]()
        for first, count in zip(panes[at].tolist(), most.tolist(), strict=True):
            window = arrived.window(int(arrived.ends[first]))
            answered = self.standings.after_rows(int(standings[first]), window, count)
            numbers += answered[0]
            bits += answered[1]
        offsets = np.cumsum(most) - most
        after = standings.copy()
        after[panes] = np.array(numbers, np.int64)[offsets[kinds] + counts - 1]
        of = np.repeat(offsets[kinds], counts)
        return np.array(bits, np.int64)[of + positions], after

    def _row_by_row(self, arrived: Arrived, standings: Integers) -> tuple[Integers, Integers]:
        """Return the same where the trigger looks at rows, or at their times."""
        by_pane, elements = arrived.by_pane, arrived.elements
        rows, after, bits = _AskedRows(self._program, elements.rows), standings.copy(), np.zeros(len(by_pane.order), np.int64)
        numbers = elements.numbers[by_pane.order]
        for at, (pane, row) in enumerate(zip(by_pane.groups.tolist(), numbers.tolist(), strict=True)):
            window = arrived.window(int(arrived.ends[pane]))
            with rows.asking(row, window):
                after[pane], bits[at] = self.standings.after_row(int(after[pane]), window, rows.times[row], rows.values[row])
        return bits, after


def standings_with_columns_of_now(change: Callable[[Value], Value], rows: pa.Table) -> pa.Table:
    """Return rows of panes with what a function makes of the values that triggers keep."""
    standings = [pickles.dumps(change(pickles.loads(each))) for each in rows[STANDING].to_pylist()]
    return replaced(rows, STANDING, pa.array(standings, pa.binary()))


def kinds_of(numbers: Integers, ends: Integers) -> Integers:
    """Return one code for panes that are alike: of the same number, in windows with the same end."""
    return combined(numbers, number_codes(ends))


class _AskedRows:
    """The rows of a batch, by number, as the functions of the user see rows."""

    def __init__(self, program: Program, rows: pa.Table) -> None:
        self.values = python_rows(rows.select(program.values))
        self.times: list[int] = rows[TIME].fill_null(MIN).to_pylist()
        self._program, self._rows = program, rows

    @contextmanager
    def asking(self, number: int, window: Window) -> Iterator[None]:
        """Hand a row to the trigger.

        Raises:
            UserFunctionError: a function of the user that the trigger calls raised.
        """
        try:
            yield
        except WindowpaneError:
            raise
        except Exception as error:
            key = python_keys(self._rows.slice(number, 1), self._program.key_columns)[0]
            raised = UserFunctionError(self._program.spec.trigger, key, window, error)
            raise raised.located(element=self.values[number]) from error

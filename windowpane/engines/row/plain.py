"""Plain windows: the windows of all elements of a batch, and which of those elements are late."""

from __future__ import annotations

from windowpane.arrays import Integers
from windowpane.engines.row.assigning import Assigned, windows_by_time
from windowpane.engines.row.elements import Elements
from windowpane.engines.row.grouped import GroupedOperator


class PlainWindowsOperator(GroupedOperator):
    """Takes the elements of windows that do not merge."""

    def _assigned(self, elements: Elements) -> Assigned | None:
        """Return the windows of elements, ``None`` where they are to be taken one by one."""
        found = windows_by_time(self._assigner, elements, self)
        if found is None:
            return None
        windows, kinds, members = found
        watermark = self.timers.watermark
        return Assigned(windows, kinds, members, [self._lateness.is_late(each.max_timestamp, watermark) for each in windows])

    def _report_all_late(self, elements: Elements, assigned: Assigned, numbers: Integers) -> None:
        for number in numbers[assigned.are_late()[numbers]].tolist():
            key, kind = elements.keys[elements.codes[number]], assigned.kinds[number]
            self._at.row_number = elements.first + number
            missed, accepted = assigned.missed[kind], bool(assigned.live[kind])
            # The collector has the row by its number, so its value is not made.
            self._report_late(key.value, None, elements.instants[number], missed, accepted)

"""A process and all that it starts: what they are, and the processor time that they have taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil


@dataclass
class ProcessTree:
    """The processor time of a process and its children; what one that has ended had taken when it was last seen, counts too.

    Args:
        pid: the id of the process.
    """

    pid: int
    _spent: dict[int, float] = field(default_factory=dict)

    @property
    def cpu_s(self) -> float:
        """Seconds of the processor, as of the last look."""
        return sum(self._spent.values())

    def look(self) -> Iterator[psutil.Process]:
        """Note the processor time of each process that runs, and yield it.

        Raises:
            psutil.NoSuchProcess: the process has ended.
        """
        root = psutil.Process(self.pid)
        for member in [root, *root.children(recursive=True)]:
            try:
                cpu = member.cpu_times()
            except psutil.NoSuchProcess:
                continue
            self._spent[member.pid] = cpu.user + cpu.system
            yield member

    def looked(self) -> float:
        """Look, and return the seconds of the processor.

        Raises:
            psutil.NoSuchProcess: the process has ended.
        """
        for _ in self.look():
            pass
        return self.cpu_s

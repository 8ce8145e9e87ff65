"""Settings: what programs of every kind have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.times import Duration, format_micros, to_micros


@dataclass(frozen=True)
class Settings:
    """Lateness, side outputs and the engine of a program.

    Raises:
        InvalidSpecError: negative lateness, two outputs of one name, or a side output without a schema.
    """

    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    """Where late rows go, ``None`` to drop (and count) them."""
    side_tags: tuple[OutputTag, ...] = ()
    engine: str | None = None

    def __post_init__(self) -> None:
        if self.allowed_lateness < 0:
            raise InvalidSpecError(f"allowed lateness cannot be negative, but is {format_micros(self.allowed_lateness)}.")
        names = [tag.name for tag in self.tags]
        if len(set(names)) != len(names) or "main" in names:
            raise InvalidSpecError(f"side outputs need names that differ from each other and from 'main', but are {names}.")
        for tag in self.side_tags:
            if tag.schema is None:
                raise InvalidSpecError(f"{tag!r} is written to by a function, so it needs a schema: OutputTag(name, schema).")

    @classmethod
    def among(cls, parts: Mapping[str, Value]) -> dict[str, Value]:
        """Return parts of a plan, by name, with those that are settings as one: how a program is written down in one line."""
        names = {each.name for each in dataclasses.fields(cls)}
        own = {name: value for name, value in parts.items() if name in names}
        return {name: value for name, value in parts.items() if name not in names} | {"settings": cls(**own)}

    @property
    def tags(self) -> tuple[OutputTag, ...]:
        return (*((self.late_tag,) if self.late_tag else ()), *self.side_tags)

    @property
    def late_text(self) -> str:
        return f"side output {self.late_tag.name}" if self.late_tag else "counted and dropped"


def plan_text(title: str, lines: Mapping[str, str]) -> str:
    """Return a plan as ``explain`` shows it: a title, and a line for each part that has a text."""
    return "\n".join([title, *(f"  {name:<15} {text}" for name, text in lines.items() if text)])


DEFAULTS = Settings()
"""Settings of which none was given."""


@dataclass(frozen=True, eq=False)
class Configured:
    """A step of the fluent API that takes settings."""

    _settings: Settings = dataclasses.field(default=DEFAULTS, kw_only=True)

    def _with(self, **settings: Value) -> Self:
        return dataclasses.replace(self, _settings=dataclasses.replace(self._settings, **settings))

    def allowed_lateness(self, lateness: Duration) -> Self:
        """Wait that long for rows behind the watermark.

        An event-time window fires when the watermark reaches its end, as without lateness, and is kept until the watermark is
        further by ``lateness``. A row that comes in between is late, and joins the window, which fires again: with the
        default trigger once a batch, with all of its rows. So a window may have several results; the last one holds. Rows that
        come after that are dropped and counted as ``late_dropped``, or go to ``side_output_late_data``. OVER windows that emit on
        window close, and deduplication, have one result a row: they hold rows back, or keep what they know of them, so long.

        Args:
            lateness: text such as ``"1 hour"``, a timedelta, or microseconds; nothing if it is not called.

        Returns:
            The same step, to continue with: a trigger, ``side_output_late_data``, a function.

        Raises:
            InvalidDurationError: it is no duration.
            InvalidSpecError: it is negative. Windows by the clock have no late rows, and pay no heed to it.

        Example:
            >>> windowed.allowed_lateness("6 hours").side_output_late_data("late").aggregate(n=wp.count())
        """
        return self._with(allowed_lateness=to_micros(lateness))

    def side_output_late_data(self, tag: OutputTag | str) -> Self:
        """Send late rows to a side output: their columns, and why they were late.

        All have ``dropped`` (false if something took the row), ``watermark``, ``late_by``, ``watermark_delay`` (microseconds) and
        ``led_by``, rows of windows also ``windows_missed``.

        Args:
            tag: the side output, or its name.

        Raises:
            InvalidSpecError: what was given is neither. When the program is built: the input has a column of such a name.

        Example:
            >>> windowed.side_output_late_data("late").aggregate(n=wp.count()).get_side_output("late")
        """
        if not isinstance(tag, OutputTag | str):
            raise InvalidSpecError(f"side_output_late_data takes an OutputTag or a name, such as 'late', got {tag!r}.")
        return self._with(late_tag=OutputTag(tag) if isinstance(tag, str) else tag)

    def engine(self, name: str) -> Self:
        """Run on this engine instead of the planner's choice: ``explain`` names the engines.

        ``"reference"`` runs every program of windows, ``"over reference"`` every one of OVER windows. Results do not depend on
        the engine; a checkpoint does, so a restart keeps to the one it began with.
        """
        return self._with(engine=name)

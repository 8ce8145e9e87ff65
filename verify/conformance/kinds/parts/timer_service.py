"""Kind ``timer_service``: timers by key and namespace, and the two clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.comparison import same_records
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.codec import decode_key, encode_key
from windowpane.state.entries import MemoryEntries
from windowpane.state.timers import Timer, TimerQueue
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import Window

_DOMAINS = ("event_time", "processing_time")


@dataclass(frozen=True)
class Namespace(Window):
    """A namespace that is no window: its name."""

    name: str

    @property
    def max_timestamp(self) -> int:
        """``MAX``: it has no time."""
        return MAX


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; with ``restart`` the service is built anew over its entries after each."""
    require_known(case.body, {"id", "kind", "steps", "fired_order"}, "case")
    replayed = _Replay(case.get("fired_order", "exact"))
    differences = []
    for number, step in enumerate(case.get("steps")):
        found = replayed.step(step)
        differences += [Difference(f"step {number} {each.where}", each.expected, each.got) for each in found]
        if options.restart:
            replayed.restart(keep_clocks=True)
    return differences


class _Replay:
    def __init__(self, fired_order: str) -> None:
        self._entries = (MemoryEntries(), MemoryEntries())
        self._service = TimerService(*(TimerQueue(entries) for entries in self._entries))
        self._key = encode_key(None)
        self._order = fired_order
        self._on_fire: Json = {}
        self._fired: list[Json] = []

    def restart(self, keep_clocks: bool) -> None:
        before = self._service
        self._entries = tuple(MemoryEntries(entries.copy()) for entries in self._entries)  # type: ignore[assignment]
        self._service = TimerService(*(TimerQueue(entries) for entries in self._entries))
        if keep_clocks:
            self._service.restore_clocks(before.watermark, before.processing_time)

    def step(self, step: Json) -> list[Difference]:
        if "expect" in step:
            require_known(step, {"expect"}, "expect step")
            return self._expect(step["expect"])
        names = set(step) - {"fired"}
        if len(names) != 1:
            raise NotUnderstoodError(f"timer step {sorted(step)} is not understood")
        name = names.pop()
        self._fired = []
        self._act(name, step[name])
        if "fired" in step and not same_records(step["fired"], self._fired, self._order):
            return [Difference(f"{name} fired", step["fired"], self._fired)]
        return []

    def _act(self, name: str, value: Any) -> None:
        actions: dict[str, Callable[[Any], None]] = {
            "set_key": self._set_key,
            "on_fire": self._set_on_fire,
            "snapshot_restore": lambda _: self.restart(keep_clocks=False),
            "advance_watermark": lambda time: self._service.advance_watermark(time, self._fire),
            "advance_processing_time": lambda time: self._service.advance_processing_time(time, self._fire),
        }
        if name in actions:
            actions[name](value)
        else:
            self._set_timer(name, value, self._key)

    def _set_key(self, key: Any) -> None:
        self._key = encode_key(key)

    def _set_on_fire(self, actions: Json) -> None:
        self._on_fire = actions

    def _set_timer(self, action: str, timer: Json, key: bytes) -> None:
        verb, _, domain = action.partition("_")
        if verb not in ("register", "delete") or domain not in _DOMAINS:
            raise NotUnderstoodError(f"timer step {action!r} is not understood")
        require_known(timer, {"namespace", "time"}, action)
        call: Callable[[int, bytes, Window], None] = getattr(self._service, action)
        call(timer["time"], key, Namespace(timer["namespace"]))

    def _fire(self, timer: Timer) -> None:
        self._fired.append(_shown(timer))
        for action, registered in self._on_fire.items():
            self._set_timer(action, registered, timer.key_bytes)

    def _expect(self, expect: Json) -> list[Difference]:
        differences = []
        for name, expected in expect.items():
            got = self._read(name, expected)
            is_list_of_timers = name.startswith("each_")
            same = same_records(expected, got, "any") if is_list_of_timers else got == expected
            if not same:
                differences.append(Difference(name, expected, got))
        return differences

    def _read(self, name: str, expected: Any) -> Any:
        queues = {"event_time": self._service.event_time, "processing_time": self._service.processing_time_queue}
        if name in ("current_watermark", "current_processing_time"):
            return self._service.watermark if name == "current_watermark" else self._service.processing_time
        if name == "physical_timers":
            due = self._service.processing_time_queue.next_time()
            return [] if due is None else [due]
        for domain, queue in queues.items():
            if name == f"{domain}_timers":
                return len(list(queue))
            if name == f"{domain}_timers_of":
                return [{**one, "is": _count_of(queue, one["namespace"])} for one in expected]
            if name == f"each_{domain}_timer":
                return [_shown(timer) for timer in queue]
        raise NotUnderstoodError(f"expect field {name!r} of a timer service is not understood")


def _count_of(queue: TimerQueue, namespace: str) -> int:
    return sum(timer.window == Namespace(namespace) for timer in queue)


def _shown(timer: Timer) -> Json:
    assert isinstance(timer.window, Namespace), "only namespaces have timers here"
    return {"time": timer.time, "key": decode_key(timer.key_bytes), "namespace": timer.window.name}

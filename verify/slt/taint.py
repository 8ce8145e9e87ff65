"""What hangs on a refused statement: relations that were never made, or lack rows.

A record that fails and names one of them says nothing of its own; it is counted with the statement that was refused.
"""

from __future__ import annotations

import re

_NAME = r'("[^"]+"|[\w.]+)'
_MADE = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:(?:temporary|temp|materialized)\s+)?\w+\s+(?:if\s+not\s+exists\s+)?" + _NAME,
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\s*(?:insert\s+into|update|delete\s+from|copy|(?:alter|drop)\s+(?:materialized\s+)?\w+(?:\s+if\s+exists)?)\s+" + _NAME,
    re.IGNORECASE,
)
_DROPPED = re.compile(r"\s*drop\b", re.IGNORECASE)
_READS = re.compile(r"\s*create\s+(?:or\s+replace\s+)?(?:materialized\s+)?(?:view|sink)\b", re.IGNORECASE)
_SINK_INTO = re.compile(r"\s*create\s+sink\s+.*?\binto\s+" + _NAME, re.IGNORECASE | re.DOTALL)
_WIDE = r"set|alter\s+system|use|start|begin|commit|abort|rollback|(?:create|drop|alter)\s+(?:schema|user|database)|grant|revoke"
_SET = re.compile(rf"\s*(?:{_WIDE})\b", re.IGNORECASE)


class Taint:
    """The names that hang on a refused statement, each with the reason."""

    def __init__(self) -> None:
        """Begin with none."""
        self._reasons: dict[str, str] = {}
        self._readers: dict[str, set[str]] = {}
        self._everything: str | None = None

    def refused(self, text: str, reason: str) -> None:
        """Note a statement that was refused, or not run, for a reason."""
        for each in text.split(";"):
            if _SET.match(each):
                self._everything = reason
            for pattern in (_MADE, _CHANGED, _SINK_INTO):
                if found := pattern.match(each):
                    self._spread(_bare(found.group(1)), reason, to_readers=not _DROPPED.match(each))

    def _spread(self, name: str, reason: str, *, to_readers: bool = True) -> None:
        """Note that a relation lacks something, and with it those that read it; one that was not dropped lacks nothing."""
        self._reasons[name] = reason
        for reader in self._readers.get(name, set()) - self._reasons.keys() if to_readers else ():
            self._spread(reader, reason)

    def everything(self, reason: str) -> None:
        """Note that whatever fails from here on may hang on something that was not run."""
        self._everything = reason

    def made(self, text: str) -> None:
        """Note a statement that ran: what it makes of tainted relations is tainted, what it makes anew is not."""
        for each in text.split(";"):
            if (found := _MADE.match(each)) or (found := _CHANGED.match(each)):
                name = _bare(found.group(1))
                for word in _words(each[found.end() :]) if _READS.match(each) else ():
                    self._readers.setdefault(word, set()).add(name)
                if (reason := self._of_names(each[found.end() :])) is not None:
                    self._reasons[name] = reason
                elif not _CHANGED.match(each):
                    self._reasons.pop(name, None)

    def reason(self, text: str) -> str | None:
        """Return why a statement may fail through no fault of its own."""
        return self._of_names(text) or self._everything

    def _of_names(self, text: str) -> str | None:
        words = _words(text)
        return next((reason for name, reason in self._reasons.items() if name in words), None)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip('"').lower()

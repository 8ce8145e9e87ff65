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
_WIDE = r"set|alter\s+system|use|start|begin|commit|abort|rollback|(?:create|drop|alter)\s+(?:schema|user|database)|grant|revoke"
_SET = re.compile(rf"\s*(?:{_WIDE})\b", re.IGNORECASE)


class Taint:
    """The names that hang on a refused statement, each with the reason."""

    def __init__(self) -> None:
        """Begin with none."""
        self._reasons: dict[str, str] = {}
        self._everything: str | None = None

    def refused(self, text: str, reason: str) -> None:
        """Note a statement that was refused, or not run, for a reason."""
        for each in text.split(";"):
            if _SET.match(each):
                self._everything = reason
            for pattern in (_MADE, _CHANGED):
                if found := pattern.match(each):
                    self._reasons[_bare(found.group(1))] = reason

    def everything(self, reason: str) -> None:
        """Note that whatever fails from here on may hang on something that was not run."""
        self._everything = reason

    def made(self, text: str) -> None:
        """Note a statement that ran: what it makes of tainted relations is tainted, what it makes anew is not."""
        for each in text.split(";"):
            if (found := _MADE.match(each)) or (found := _CHANGED.match(each)):
                name = _bare(found.group(1))
                if (reason := self._of_names(each[found.end() :])) is not None:
                    self._reasons[name] = reason
                elif not _CHANGED.match(each):
                    self._reasons.pop(name, None)

    def reason(self, text: str) -> str | None:
        """Return why a statement may fail through no fault of its own."""
        return self._of_names(text) or self._everything

    def _of_names(self, text: str) -> str | None:
        words = set(re.findall(r"\w+", text.lower()))
        return next((reason for name, reason in self._reasons.items() if name in words), None)


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip('"').lower()

"""The prompt: statements typed by hand, with history and completion. A statement ends with a semicolon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from rich.console import Console

from windowpane.errors import WindowpaneError
from windowpane.sql.expressions.aggregates import AGGREGATES
from windowpane.sql.expressions.functions import FUNCTIONS
from windowpane.sql.session import Session
from windowpane.sql.shell.printing import Printer
from windowpane.sql.windows.calls import NUMBERING
from windowpane.sql.windows.table_functions import NAMES

_KEYWORDS = [
    "AND",
    "APPEND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CLOSE",
    "CREATE",
    "CURRENT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "EMIT",
    "END",
    "EXCLUDE",
    "EXPLAIN",
    "FIRST",
    "FLUSH",
    "FOLLOWING",
    "FOR",
    "FROM",
    "FULL",
    "GROUP",
    "GROUPS",
    "HAVING",
    "IGNORE",
    "IN",
    "INNER",
    "INSERT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MATERIALIZED",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "ONLY",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "PRECEDING",
    "PRIMARY",
    "QUALIFY",
    "RANGE",
    "RIGHT",
    "ROW",
    "ROWS",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW",
    "SINK",
    "SOURCE",
    "TABLE",
    "TABLES",
    "THEN",
    "UNBOUNDED",
    "UNION",
    "UPDATE",
    "USING",
    "VALUES",
    "VIEW",
    "VIEWS",
    "WAIT",
    "WATERMARK",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
]
_QUIT = ("quit", "exit", "\\q")


class SqlCompleter(Completer):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        word = document.get_word_before_cursor(WORD=False)
        if not word or not word[-1].isalnum():
            return
        for candidate, kind in self._candidates():
            if candidate.lower().startswith(word.lower()):
                yield Completion(candidate, start_position=-len(word), display_meta=kind)

    def _candidates(self) -> Iterator[tuple[str, str]]:
        for relation in self._session.relations():
            yield relation, "relation"
            for column in self._session.columns(relation):
                yield column, f"column of {relation}"
        for keyword in _KEYWORDS:
            yield keyword, "keyword"
        for function in dict.fromkeys([*AGGREGATES, *NUMBERING, "lag", "lead", "nth_value", *FUNCTIONS, *NAMES, "gap_fill"]):
            yield function, "function"


def run_prompt(session: Session, console: Console, history: Path | None) -> None:
    """Read statements from the terminal and run them until the end of input, ``quit`` or ``exit``."""
    console.print("Statements end with a semicolon; FLUSH brings views up to date; quit ends.", style="dim")
    kept = InMemoryHistory() if history is None else FileHistory(str(history))
    reader: PromptSession[str] = PromptSession(history=kept, completer=SqlCompleter(session), complete_while_typing=False)
    for text in _statements(reader):
        try:
            printer = Printer(console)
            for result in session.stream(text):
                if result.has_rows:
                    printer.print(result)
                else:
                    console.print(result.tag, style="dim")
                if result.notice:
                    console.print(f"notice: {result.notice}", style="dim")
        except WindowpaneError as error:
            console.print(f"[red]error:[/red] {type(error).__name__}: ", end="")
            console.print(str(error), markup=False, highlight=False)


def _statements(reader: PromptSession[str]) -> Iterator[str]:
    """Yield what is typed, as soon as a line ends with a semicolon."""
    lines: list[str] = []
    while True:
        try:
            line = reader.prompt("windowpane> " if not lines else "        -> ")
        except KeyboardInterrupt:
            lines = []
            continue
        except EOFError:
            return
        if not lines and line.strip().rstrip(";").lower() in _QUIT:
            return
        lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines = []
        elif not "".join(lines).strip():
            lines = []

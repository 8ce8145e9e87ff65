"""The page: what ``wp.inspect`` shows, drawn, live, and as one file for a ticket.

``data`` makes the figures, all from the tables of an inspection; ``server`` serves them, and the files of ``assets``, which draw
them without anything from elsewhere. Nothing is ever written.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowpane.errors import InvalidSpecError, MissingExtraError

if TYPE_CHECKING:
    from windowpane.ui.server import Page

__all__ = ["export", "ui"]


def ui(query: Any, port: int = 0, host: str = "127.0.0.1") -> Page:
    """Serve the page of a query that runs in this process, or of a checkpoint, in the background.

    Args:
        query: a ``StreamingQuery``, or a checkpoint location.
        port: the port; 0 for a free one.
        host: the address. From other machines than this one the page is shown with its token only, which is in ``url``.

    Returns:
        What serves it, with ``url`` and ``close()``.

    Raises:
        MissingExtraError: starlette or uvicorn is not installed.
        InvalidSpecError: the checkpoint of the query is not known.

    Example:
        >>> page = wp.ui(query)
        >>> print(page.url)
    """
    location = query if isinstance(query, str | Path) else _checkpoint_of(query)
    return serve([str(location)], port, host, [] if location is query else [query])


def serve(checkpoints: Sequence[str], port: int, host: str, queries: Sequence[Any] = ()) -> Page:
    """Serve the page of some checkpoints in the background."""
    try:
        from windowpane.ui.server import Page
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise MissingExtraError(error.name, "ui") from None
    page = Page(checkpoints, port, host, queries)
    page.start(threading.Thread)
    return page


def export(checkpoint: str, path: str | Path) -> None:
    """Write the page of a checkpoint as one file, with all that it shows; whole, or not at all."""
    from windowpane.ui.document import exported

    target = Path(path)
    with tempfile.NamedTemporaryFile("w", dir=target.parent, suffix=".html", delete=False, encoding="utf-8") as file:
        file.write(exported(checkpoint))
    Path(file.name).replace(target)


def _checkpoint_of(query: Any) -> str:
    try:
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot()).removeprefix("file:")
    except AttributeError:
        raise InvalidSpecError("the checkpoint of this query is not known here: say wp.ui('where it is').") from None

"""Programs of settling: a changelog's types with the engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.program import Upstream
from windowpane.engines.settling.program import SettlingProgram
from windowpane.planning.description.programs import of_settling
from windowpane.planning.engines import with_engine


def compile_settling(columns: pa.Schema, upstream: Upstream) -> SettlingProgram:
    """Return the program that settles a changelog of rows with ``columns``, which come from ``upstream``."""
    keys = tuple(field.name for field in columns if not pa.types.is_nested(field.type))
    return with_engine(SettlingProgram(keys or tuple(columns.names), columns, upstream=upstream), None, of_settling)

"""An extension of griffe, which reads docstrings for the site: a section "Example" holds code, as "Examples" does."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Gives the section the name under which griffe takes what stands in it for code."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Look at the docstring of what was read."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)

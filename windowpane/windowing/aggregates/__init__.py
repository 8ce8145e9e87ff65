"""What an aggregate is: its spec, its row form and what is known of it as data. ``windowpane.aggregates`` holds each of them.

A spec (``spec``) is bound to the types of its arguments and becomes a bound aggregate in the way that its definition says
(``definition``).
"""

from windowpane.windowing.aggregates.definition import (
    BoundAggregate,
    Call,
    ColumnarCall,
    Definition,
    Returns,
    define,
    definition_of,
)
from windowpane.windowing.aggregates.spec import Aggregate, CombinedAggregate

__all__ = [
    "Aggregate",
    "BoundAggregate",
    "Call",
    "ColumnarCall",
    "CombinedAggregate",
    "Definition",
    "Returns",
    "define",
    "definition_of",
]

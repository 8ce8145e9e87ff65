"""From the plan that a query was bound to, to one that a view can be kept up to date by: the same rows, and little state.

Binding says what a query means, clause by clause: a comma is a cross product, WHERE a filter above all of FROM. Here filters go
down to the relations they are about (``filters``), inner joins get their keys and their order from the conditions around them
(``clusters``), columns that nobody reads go (``pruning``), and what would still compare every row with every row is refused
(``keyless``). A SELECT is not planned: DuckDB does that, and its answer is what the tests compare a view with.
"""

from windowpane.sql.optimize.filters import planned
from windowpane.sql.optimize.keyless import is_keyless, is_small
from windowpane.sql.optimize.pruning import pruned

__all__ = ["is_keyless", "is_small", "planned", "pruned"]

"""From the plan that a query was bound to, to one that a view can be kept up to date by: the same rows, and little state.

Binding says what a query means, clause by clause: a comma is a cross product, WHERE a filter above all of FROM. Here filters are
pushed down to the relations they are about (``filters``), those on numbers of rows make a Top-N (``top_n``), inner joins get
their keys and their order from the conditions around them (``clusters``), unused columns are removed (``pruning``), and a plan
that would still compare every row with every row is refused (``is_keyless``). A SELECT is not planned here: DuckDB plans it, and
the tests compare a view with its result.
"""

from windowpane.sql.optimize.clusters import is_keyless, is_small
from windowpane.sql.optimize.filters import planned
from windowpane.sql.optimize.pruning import pruned

__all__ = ["is_keyless", "is_small", "planned", "pruned"]

"""Two that belong together: one gives out numbered batches, the other keeps the number of the last one that it has taken.

| gives                        | takes                                                                       |
|------------------------------|-----------------------------------------------------------------------------|
| checkpoint of a query        | a table of a store, a folder of ``Files`` or Delta, hashes in Redis         |
| checkpoint of a view of SQL  | the store of the session, or the change log on the way there                |
| outbox of a sink of SQL      | a table of a store, a folder of Parquet files                               |

Rule: the giver knows the last batch that both have committed (``settled``), and the one that it has begun since (``begun``). The
taker keeps its number under the name of the giver, so a taker that has never seen the giver has none. The two are in step where
the taker has one of the two numbers: a crash may fall between the commits of both. Any other number says that one of the two was
restored from an older copy, removed, or is another one; going on would lose changes, or count them twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.errors import MisplacedStateError

NONE = -1  # The number of no batch


@dataclass(frozen=True)
class Pair:
    """Two that belong together, as an error names them."""

    giver: str  # what gives out the batches, such as ``checkpoint 'ck'``
    taker: str  # what takes them, such as ``table 'prices' of 'views.duckdb'``
    way_out: str  # what to do where they are apart

    def has_begun(self, taken: int, settled: int, begun: int) -> bool:
        """Whether the taker has the batch that was begun last: such a batch is given again, and changes nothing.

        ``taken`` is its last batch, ``settled`` the last one that the giver knows it to have, ``begun`` the one that it is given
        now, or else that one; ``NONE`` is none.
        """
        if taken not in (settled, begun):
            raise MisplacedStateError(
                f"{self.taker} has {_number(taken)} of {self.giver}, which {_given(settled, begun)}. One of the two was restored "
                f"from an older copy, removed, or is another one: what changed between these batches would be lost, or counted "
                f"twice. {self.way_out} Nothing was written."
            )
        return taken == begun


def _number(number: int) -> str:
    return "no batch" if number == NONE else f"batch {number} as the last one"


def _given(settled: int, begun: int) -> str:
    last = "has given it none so far" if settled == NONE else f"knows batch {settled} to be taken"
    return last if begun == settled else f"{last} and gives batch {begun}"

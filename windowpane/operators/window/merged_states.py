"""The state of windows that merge: one rule for contents and for what triggers keep.

The sources are merged first, one after the other, and then into the target: ``target + ((first + second) + third)``. This order
matters where a function is not associative. A result of ``None`` counts as no state. Source of the rule: the merging states
of Flink's heap state backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any


def merged_states(target: Any, sources: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Return the state of a merged window, ``None`` for none.

    Args:
        target: the state that stays where it is, ``None`` for none.
        sources: the states that move, ``None`` for none.
        merge: makes one of two.
    """

    def join(left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else merge(left, right)

    return join(target, reduce(join, sources, None))

"""Plans over changelogs: operators that take the changes of their inputs and return those of their result.

A changelog batch is a relation with one column for each column of the plan and ``windowpane_w``, the weight of a row: 1 for an
inserted row, -1 for a deleted one; an update is both.
"""

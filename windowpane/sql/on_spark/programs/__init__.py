"""Window and OVER programs under the views of SQL: what of a plan the engines of the fluent API run, and how rows reach them.

A whole plan is a program: groups of windows (``groups``, ``calls``) or calls OVER rows (``over``), which ``query`` runs. Or only
the groups below further nodes are one, and these run on the nodes of SQL: ``groups_below`` says which. These modules only say
which part of a plan is a program, and make the rows before and behind it.
"""

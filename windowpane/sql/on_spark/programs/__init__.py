"""Window and OVER programs under the views of SQL: what of a plan the engines of the fluent API run, and how rows reach them.

A whole plan is one, see ``plan`` and ``query``; or groups of windows under further nodes are, see ``groups_below``: these run on
the nodes of SQL. Only what says which part of a plan is a program, and the rows before and behind it, stands here.
"""

"""Materialized views as Structured Streaming queries.

Each view is one query. A plan that ``programs`` knows is a window or OVER program; every other runs on the nodes of SQL, in the
stages that ``stages`` cuts it into, see ``spread_plan``, behind a program if it has groups of windows at its foot. Sources are
read by the query itself.
Changes of tables and of other views stand in files that their readers share, ``change_log``. Letters name them, each a file in
the inbox of a view: ``letters``, ``mail``. Tasks write what a batch changes to the change log of the view; from there it goes to
the store, or to PostgreSQL by the tasks: ``view_batches``. ``spark_runner`` answers what a session asks (``upkeep``),
``view_streams`` says how each view runs, ``connect_limits`` what Spark Connect cannot do. Nothing here imports pyspark: that is
the Spark room's.
"""

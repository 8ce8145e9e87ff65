"""Materialized views as Structured Streaming queries.

Each view is one query. A plan that ``programs`` knows is a window or OVER program; every other runs on the nodes of SQL, in the
stages that ``stages`` cuts it into, see ``spread_plan``, behind a program if it has groups of windows at its foot. Sources are
read by the query itself.

Changes of tables and of other views are stored in files that their readers share, ``change_log``. A change set names the files
that a view reads next, and is itself a file in the inbox of the view: ``change_sets``. Until it is sent, the store holds the
names: ``pending_changes``. Tasks write what a batch changes to the change log of the view; from there the driver brings it to the
store, or tasks to PostgreSQL: ``view_batches``. ``spark_runner`` is the runner of a session (``upkeep``), ``view_streams`` says
how each view runs, ``connect_limits`` what Spark Connect cannot do. Nothing here imports pyspark: only the Spark room does.
"""

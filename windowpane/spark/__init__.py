"""Windows on Structured Streaming: encode -> bucket -> process -> decode. The only room that imports pyspark.

``encode`` packs the rows of each bucket into Arrow blobs, ``process`` runs an engine on blobs and state inside
``transformWithState``, ``decode`` turns the blobs of one output into typed columns; ``build`` puts the three together for a
plan, ``running`` starts a query with several sinks.
"""

from windowpane.errors import MissingExtraError

MissingExtraError.unless("spark", "pyspark", "pandas")

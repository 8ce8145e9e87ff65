"""Sinks on Spark: what the outputs of a query are written to, batch by batch, each compared with the checkpoint."""

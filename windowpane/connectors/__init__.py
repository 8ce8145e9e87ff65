"""Connectors: systems that hold data elsewhere, Kafka, Delta and Iceberg, as a process reads and writes them.

Nothing here knows Spark. A client library is imported where it is used, so nobody needs those of systems that they do not use.
"""

"""Nexmark: an auction site's persons, auctions and bids, and the queries that streaming SQL is compared by.

The events and the queries are those of Flink's harness and RisingWave's tests: https://github.com/nexmark/nexmark.
"""

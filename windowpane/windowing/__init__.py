"""The vocabulary: windows, assigners, triggers, evictors, functions and aggregates, pure and stateless.

Nothing here holds state or knows an engine. A spec (an assigner, a trigger) is a frozen dataclass that prints, compares and
pickles; what it needs to remember it keeps in the context it is handed.
"""

"""What compares windowpane with Flink, RisingWave, Beam, DuckDB and its own reference operators; it is not part of the package.

- ``python -m verify.conformance PATH...``: vectors, facts about programs, replayed through an engine.
- ``python -m verify.fuzz KIND --programs N``: random programs on two engines, or on an engine and DuckDB.
- ``python -m verify.slt FILE...``: sqllogictest files, as RisingWave writes them.

All three run from the root of the repository. Nothing of ``windowpane/`` may import from here.
"""

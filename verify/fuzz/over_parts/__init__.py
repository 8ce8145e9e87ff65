"""The parts of random OVER windows: programs, streams, the answer of DuckDB, and running."""

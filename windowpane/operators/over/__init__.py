"""The OVER operators: RisingWave's, a row at a time."""

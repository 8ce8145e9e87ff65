"""The window operator: Flink's, one element at a time."""

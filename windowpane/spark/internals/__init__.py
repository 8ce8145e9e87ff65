"""What touches private parts of PySpark, each file with its fallback."""

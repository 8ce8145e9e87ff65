"""What stands on the results of a window program, in the same query: a Top-N, and filled gaps."""

"""Running calls: what goes on from the counters of the row before."""

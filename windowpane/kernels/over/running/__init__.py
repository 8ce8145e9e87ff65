"""Running calls: those that continue from the counters of the row before."""

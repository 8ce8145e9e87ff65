"""What engines share: the batch of a bucket, its rows, late rows, slices, evictors and results."""

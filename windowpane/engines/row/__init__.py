"""The row engine: the reference operator on a bucket, which takes the rows of a batch by key where that changes no result."""

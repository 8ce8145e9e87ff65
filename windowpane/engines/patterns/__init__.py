"""Row pattern matching on a bucket."""

"""Rolling features: many windows of a key that end now, and the same features as of the times of labels."""

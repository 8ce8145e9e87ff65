"""Keys: values of columns as integers that distinguish them, order them, or spread them."""

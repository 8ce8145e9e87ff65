"""Keys: values of columns as integers that tell them apart, order them, or spread them."""

"""Building: a request of the fluent API as stages on a DataFrame, with its outputs."""

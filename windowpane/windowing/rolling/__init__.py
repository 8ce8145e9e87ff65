"""Rolling features: aggregates over windows that end now."""

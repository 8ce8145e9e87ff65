"""The catalog: its entries, by name, and what CREATE, DROP, ALTER and SHOW do."""

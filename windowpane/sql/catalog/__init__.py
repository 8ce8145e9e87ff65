"""The catalog: what there is, by name, and what CREATE, DROP, ALTER and SHOW do."""

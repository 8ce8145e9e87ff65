"""Sources: rows that do not come as a DataFrame of Spark's: files, topics, tables, functions, and rows that are made up."""

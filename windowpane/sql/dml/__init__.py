"""What INSERT, UPDATE and DELETE do beyond the plain change: rows whose key the table has already, and the rows they return."""

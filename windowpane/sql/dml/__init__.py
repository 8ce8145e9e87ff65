"""What INSERT, UPDATE and DELETE do beyond the plain change: rows whose key is there already, and the rows they return."""

"""Values as text, and text as values."""

"""Rolling features of many keys and instants at once, on sorted rows."""

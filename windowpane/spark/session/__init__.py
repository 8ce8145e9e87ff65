"""Session: what is set in it, which names it takes for one, who owns a checkpoint, and what its errors say."""

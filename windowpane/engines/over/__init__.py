"""OVER windows on a bucket: the engine that emits on update, the one that emits on window close, and the reference."""

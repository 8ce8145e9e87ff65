"""OVER windows on a bucket: the general engine, which emits on update, the one that emits on window close, and the reference."""

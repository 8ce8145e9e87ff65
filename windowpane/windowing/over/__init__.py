"""OVER windows: frames, calls, and the spec of a window."""

"""Calls of OVER windows: the kernel of each call, on sorted rows and their frames."""

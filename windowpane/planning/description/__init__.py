"""Descriptions of programs: what a checkpoint keeps of the program that wrote it, and how it is read back."""

"""Replaying a case step by step, and comparing results."""

"""Replaying a case step by step, and comparing what came out."""

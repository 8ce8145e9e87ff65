"""Settling of changelogs: the plan, and its program."""

"""Queries: starting them, their settings, several sinks, and what their errors say."""

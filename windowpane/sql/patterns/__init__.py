"""MATCH_RECOGNIZE: from a parsed clause to the node of a plan, whose pattern is that of ``KeyedStream.match``."""

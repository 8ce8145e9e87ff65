"""Settling: a changelog becomes the rows that stay, each once, when no change can concern it any more."""

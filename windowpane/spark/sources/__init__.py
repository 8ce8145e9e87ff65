"""Sources: where rows come from, and the watermark they bring."""

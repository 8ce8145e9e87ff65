"""One batch of one bucket, for all engines: header, clocks, order, late rows, output, counters. No engine may be in here."""

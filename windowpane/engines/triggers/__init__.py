"""Triggers that are asked: windows of any built-in trigger on Arrow tables, the trigger asked once for those that are alike."""

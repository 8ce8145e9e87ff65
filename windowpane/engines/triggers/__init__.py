"""Triggers that are called: windows of any built-in trigger on Arrow tables; it is called once for windows that are alike."""

"""Windows in SQL: OVER, window table functions, Top-N, EMIT ON WINDOW CLOSE, temporal filters."""

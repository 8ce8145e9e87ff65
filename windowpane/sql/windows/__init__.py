"""Windows in SQL: OVER, window table functions, EMIT ON WINDOW CLOSE, temporal filters."""

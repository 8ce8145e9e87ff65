"""How ``numeric`` is computed: what DuckDB's ``DECIMAL(38, s)`` does not do, exactly or not at all.

``placing`` puts a fraction of integers at a number of decimal places; ``kernels`` are the functions on Arrow arrays that DuckDB
calls for it; ``registry`` gives them to a connection; ``arithmetic`` says which operator takes which; ``conversions`` are casts;
``text`` is how values are printed; ``messages`` gives DuckDB's words for what does not fit a number our own.
No binding of names, and no state, may be in it.
"""

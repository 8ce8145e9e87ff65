"""Kernels: pure functions on Arrow arrays that the columnar engines call, one algorithm a file."""

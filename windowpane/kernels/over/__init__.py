"""Kernels of OVER windows: sorted rows in, frames and the values of calls out."""

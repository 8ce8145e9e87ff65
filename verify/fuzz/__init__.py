"""Random programs over random streams: whatever runs a program must give what the reference does.

``python -m verify.fuzz KIND --programs N [--seed S]`` runs N programs of a kind, prints the seed and the program of each that
differs, and ends with the line ``N passed, N failed``. A program is all there is to its seed: the same seed makes the same
program, stream, cuts and restarts on every machine.
"""

"""The demo: the flights of 2013 from New York as a stream, through hourly windows that take late flights into account.

``python -m windowpane.demo`` runs it, and ``program.py`` is the program to read.
"""

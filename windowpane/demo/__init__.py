"""The demo: the flights of 2013 from New York as a stream.

They go through hourly windows that take late flights into account, and through OVER windows that follow each aircraft.
``python -m windowpane.demo`` runs it, and ``program.py`` and ``aircraft.py`` are the programs to read.
"""

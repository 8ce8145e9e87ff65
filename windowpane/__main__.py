"""``python -m windowpane``: the command line."""

from windowpane.cli import main

main()

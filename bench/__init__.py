"""The benchmarks: windowpane beside its peers, on the same rows, in one run. ``python -m bench --help``.

``cases`` says what is measured and against whom, ``programs`` and ``sql_views`` what is computed; ``bids`` makes the rows,
``expected`` knows the right answer; ``environments`` gives each peer its packages, ``systems/`` holds one script a system, each
run in a process of its own by ``measured``; ``rounds`` repeats and takes medians; ``results``, ``report``, ``chart`` and
``pages`` show the figures.
"""

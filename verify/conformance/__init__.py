"""The replay of conformance vectors: programs with steps and expectations, as JSON, run through an engine.

``python -m verify.conformance PATH... [--engine row|spark] [--restart-every-step]``

- ``vectors``: files to cases.  ``fields``: reading JSON strictly; what is not understood is skipped by name, never ignored.
- ``programs``, ``assigners``, ``triggers``, ``evictors``, ``functions``, ``scripted``: a program's JSON to windowpane's specs.
- ``recorder``: the calls of triggers, assigners and functions, counted beside the operator.
- ``observations``, ``comparison``: what an engine shows at an ``expect`` step, and how it is compared. Shared by all engines.
- ``kinds``: one module for each kind of case.  ``engines``: which engine understands which kinds.
- ``report``: verdicts, the list of failures, the last line ``N passed, N failed, N skipped``.
"""

"""Planning: the user's program as a value, and the programs that engines run.

``windows`` and ``over`` hold the plans: frozen values that know names and settings, print and explain themselves.
``window_programs`` and ``over_programs`` resolve a plan against the types of its input. What is the same for every kind is
once: ``settings``, ``sinks``, ``engines`` (which engine runs a program, and why) and ``description`` (what a restart compares).
"""

"""The fluent API of joins: two streams, joined by window, by an interval of event time, or as of an instant.

``join(left, right)`` -> ``on`` -> ``window`` or ``within``; ``as_of(left, right)`` -> ``on`` -> ``match``: module ``streams``.
What these return is a result already, which further steps (``how``, ``where``, ``select`` ...) make other ones of: ``results``.
"""

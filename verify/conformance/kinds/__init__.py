"""One module for each kind of case: ``replay(case, options)`` returns the verdict's differences, or raises to skip it."""

"""Kinds of cases that speak of one part of an operator alone."""

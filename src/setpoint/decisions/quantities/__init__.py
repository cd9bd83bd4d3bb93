"""Quantities: what can be proven of an expression, with bounds at any confidence."""

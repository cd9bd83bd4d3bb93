"""Attacks as constrained problems: distances, projections, and their solvers."""

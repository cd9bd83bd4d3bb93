"""Sensitivity: what a bound costs, and the nearest goals that can be met or proven."""

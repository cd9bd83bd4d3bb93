"""Robustness: what is left of a model's accuracy when images are moved, as attacks tell."""

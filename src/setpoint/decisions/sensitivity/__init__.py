"""Sensitivity."""

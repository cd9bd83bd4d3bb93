"""Implicit."""

"""Quantities."""

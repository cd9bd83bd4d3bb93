"""Columns of a table: kinds, roles, dates, encodings for networks and for trees."""

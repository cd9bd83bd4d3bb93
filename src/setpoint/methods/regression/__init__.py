"""Goals of regression: errors over all rows, by bins and groups, and their prices."""

"""Display of the command line: tables, pictures of curves, bars; data in, text out."""

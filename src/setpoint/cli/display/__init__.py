"""What the command line shows: tables, pictures of curves, bars; data in, text out."""

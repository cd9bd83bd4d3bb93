"""What keeps training from collapsing: recent rows, the operating point they show, bounded steps."""

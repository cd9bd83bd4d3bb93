"""Guard of training: recent rows, the operating point that they show, bounded steps."""

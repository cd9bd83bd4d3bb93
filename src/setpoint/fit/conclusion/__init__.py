"""The conclusion of a fit: from scores of the held rows to a stack, a rule and its proof."""

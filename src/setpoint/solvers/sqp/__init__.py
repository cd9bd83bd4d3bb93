"""Penalty BFGS-SQP with steering: constrained, non-smooth, non-convex problems, one idea a file."""

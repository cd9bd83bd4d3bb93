"""``python -m benchmarks.solver``: :func:`setpoint.solve` beside PyGRANSO 1.2.0.

The same functions from the same starts in float64, one process a run, CPU seconds on one thread of
the solve alone (three iterations are made first and not counted). Runs take turns; reported are
medians, and of the ratios the median over the rounds. PyGRANSO runs at its defaults or as its own
examples set it; a limit of iterations or a tolerance that it is given is ours as well.
PyGRANSO has an environment of its own: ``sh benchmarks/solver/setup_pygranso.sh``.
"""

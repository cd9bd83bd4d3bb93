"""Fitting: from rows and a goal to models, a rule and its proof; the doors call it."""

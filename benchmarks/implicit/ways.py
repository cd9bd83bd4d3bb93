"""The names of those who take part, in the order of the tables."""

PLAIN, WEIGHTED = "cross-entropy", "weighted cross-entropy"
QUANTILE, LAGRANGIAN, IMPLICIT = "quantile", "Lagrangian", "implicit"
WARM, PAIRWISE = "cross-entropy, then implicit", "pairwise"
MIXED = "implicit, .3 cross-entropy"
ORDER = (PLAIN, WEIGHTED, LAGRANGIAN, QUANTILE, PAIRWISE, IMPLICIT, MIXED, WARM)

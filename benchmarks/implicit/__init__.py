"""``python -m benchmarks.implicit TABLE``: thresholds as functions of the model, beside the others.

Kumar et al., Implicit rate-constrained optimization of non-decomposable objectives, ICML 2021,
train for a metric at an operating point with the threshold held by the implicit function theorem.
Its tables are trained anew, with a baseline that the paper does not have: class-weighted
cross-entropy whose weight is chosen for the goal.

curve
    Mean precision over recalls .95 to 1, linear models, five tables.
point
    The miss rate at a false positive rate of 1, 2, 5 and 10 %, linear models and perceptrons, four
    tables; at the point of the ROC curve, and with the threshold carried from validation rows.
images
    Partial AUROC up to a false positive rate of 1 to 20 %, convolutional networks, two data sets.
fairness
    Accuracy under a bound on the gap between groups, beside fairlearn.

Protocol
    50/25/25 for each seed, stratified: to train, to choose, to test. Everybody gets the same rows,
    the same first weights, the same number of steps. Configuration and step are those of the best
    goal's value on validation rows; grids are in :mod:`benchmarks.implicit.lineup`.
"""

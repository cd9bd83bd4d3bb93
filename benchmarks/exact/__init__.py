"""``python -m benchmarks.exact TABLE``: hard metrics without approximation, beside the others.

Peng et al., Exact reformulation and optimization for direct metric optimization in binary
imbalanced classification, arXiv 2507.15240, tie an auxiliary variable to each decision by a
continuous function and solve the goal itself by an exact penalty. Its first table is trained anew,
with a warm start that has converged, baselines with tuned thresholds, and a baseline that trains
on as long.

table1
    Recall at precision .8, precision at recall .8 and F1 by linear heads and perceptrons on six
    tables: figures of training rows at the method's own threshold, test figures beside them.
ablation
    Without a regulariser, with either; equations or inequalities; ℓ₁ or quadratic penalty;
    threshold fixed or trained.
scale
    One and ten million rows of a generator that a linear head cannot fit: time for an epoch,
    memory, recall at precision .8.

Protocol
    56/19/25 for each seed, stratified: to train, to choose thresholds, to test. monks-3 keeps its
    published parts (a quarter of its training rows chooses thresholds); sentences of one article of
    ade-corpus-v2 stay together. ``python -m benchmarks.exact.features`` writes the rows once.
"""

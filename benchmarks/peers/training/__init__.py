"""``GoalLoss`` beside torch-btg, LibAUC, Cooper and humancompatible-train: training on a goal.

Each peer runs in an environment of its own (``setup_btg.sh`` and its siblings one folder up) on the
same tables, splits, network, batches and number of steps. A peer gets a small grid of its own rates
and surrogates, of which the tune rows choose; ``GoalLoss`` runs with its defaults. ``*_side``
modules are run by a peer's Python and need torch, numpy and that peer alone, as does what they
share: ``loop``, ``early_stopping`` and ``batch_rates``.
"""

"""``python -m benchmarks.robustness PART``: attacks as constrained programs, beside the others.

max
    The share of images that are misclassified within ε, ℓ₂, ℓ∞ and ℓ₁: ours, torchattacks' APGD-CE,
    APGD-T and FAB and their union, a projected ℓ₁ attack, PyGRANSO image by image.
min
    The radius of the nearest misclassified point: ours, foolbox's DDN and FMN, PyGRANSO.
perceptual
    Misclassified within a distance between features of a second network: ours, a penalty attack
    and a projected attack.
gpu
    A thousand images in one batch on a GPU: wall time, beside the CPU.

Protocol
    200 test images that a small network gets right, digits (8×8) and mnist (28×28), float64, one
    thread, CPU seconds. Everybody is judged by one criterion (``judging``): clipped to [0, 1], then
    margin and distance. No attack starts from another's points. Others run at their defaults and
    with a large budget. ``python -m benchmarks.robustness.models`` trains the networks once;
    ``sh benchmarks/robustness/setup_attacks.sh`` and ``sh benchmarks/solver/setup_pygranso.sh`` set
    up the others. Their points are kept in ``.data/robustness/points`` and not made again.
"""

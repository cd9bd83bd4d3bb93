"""The ranges of the partial areas: one-way, false positive rates up to .1; two-way as in LibAUC's
tutorial, false positive rates up to .3 and recalls of at least .7.
"""

from __future__ import annotations

ONE_WAY_FPR = 0.1
MAX_FPR, MIN_TPR = 0.3, 0.7

"""Ranges of the partial areas; the two-way one is that of LibAUC's tutorial."""

from __future__ import annotations

ONE_WAY_FPR = 0.1
MAX_FPR, MIN_TPR = 0.3, 0.7

"""Functions of ``scipy.special``, loaded when one is first asked for."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """The function of that name."""
    return getattr(importlib.import_module("scipy.special"), name)

"""What PyGRANSO 1.2.0 imports and does not find: gurobipy, and a name NumPy 2 no longer has.

Import this before PyGRANSO. It is run as it is otherwise, in an environment of its own, and asked
by what its documentation says: https://ncvx.org.
"""

from __future__ import annotations

import contextlib
import io
import sys
import types
import warnings
from typing import Any

import numpy as np

warnings.filterwarnings("ignore", category=DeprecationWarning)


def shim() -> None:
    """Put both in their places; harmless where they are there."""
    for name in ("gurobipy",):
        stand_in: Any = types.ModuleType(name)
        stand_in.GRB = stand_in.Env = stand_in.Model = None
        sys.modules.setdefault(name, stand_in)
    import numpy.core.numeric as numeric  # the old name, which is the one that is asked for

    if "Inf" not in vars(numeric):
        numeric.Inf = np.inf


@contextlib.contextmanager
def silent():
    """Without what is printed."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


shim()

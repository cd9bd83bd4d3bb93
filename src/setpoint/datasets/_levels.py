"""Levels of a column, the quick way where every cell is a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from setpoint.datasets.columns.cell_values import Levels, levels

if TYPE_CHECKING:
    import pandas as pd


def levels_of(series: pd.Series, name: str) -> Levels:
    """Cells of a column as levels: what :func:`levels` gives, which looks at each level by itself.

    >>> import pandas as pd
    >>> levels_of(pd.Series(["b", None, "a", "b"]), "x")
    Levels(codes=array([ 0, -1,  1,  0]), texts=('b', 'a'))
    """
    import pandas as pd
    from pandas.api import types

    is_text = isinstance(series.dtype, pd.StringDtype) or (
        types.is_object_dtype(series.dtype) and types.infer_dtype(series, skipna=True) == "string"
    )
    if not is_text:
        return levels(series, name)
    codes, found = pd.factorize(series.array)
    return Levels(codes, tuple(np.asarray(found, dtype=object)))

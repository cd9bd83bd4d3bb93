"""Bundled sets: one file of our own, and the sets scikit-learn carries.

Nothing is downloaded. The file of our own is held to a checksum, so that a number in a report can
be traced to exactly these rows.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, FileError
from setpoint._core.words import listing, nearest
from setpoint.datasets._carried import CARRIED, Carried, Task
from setpoint.datasets.text_files import exact_floats

if TYPE_CHECKING:
    import pandas as pd

_FOLDER: Traversable = resources.files("setpoint.datasets") / "data"
_WILT_SHA256 = "7dc35a277b9cc1b7023a831a49b2f3b7d4629d0b2baf9de743ae3e64ff4cf820"
_WILT = (
    "Segments of a high-resolution satellite image; 261 of 4839 show diseased trees (1). Johnson, "
    "B. (2013), Wilt, UCI Machine Learning Repository, doi:10.24432/C5KS4M, CC BY 4.0. The "
    "published split has a shifted prior: 1.7 % positive in train, 37.4 % in test."
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A set of rows with everything declared that a goal needs to know.

    Parameters
    ----------
    name : str
        The name it was loaded by.
    X : pandas.DataFrame
        Features, one row per example, index 0 … n−1.
    y : numpy.ndarray of shape (n,)
        Labels (integers) or values (floats).
    task : {"binary", "multiclass", "regression"}
        What ``y`` is.
    positive : label or None
        The positive label of a binary set.
    split : numpy.ndarray of str, shape (n,), or None
        The published part of each row, where there is one.
    description : str
        Source and licence.
    """

    name: str
    X: pd.DataFrame = field(repr=False)
    y: np.ndarray = field(repr=False)
    task: Task
    positive: Any = None
    split: np.ndarray | None = field(default=None, repr=False)
    description: str = field(default="", repr=False)


def names() -> tuple[str, ...]:
    """Names that :func:`load` knows.

    >>> names()
    ('wilt', 'breast-cancer', 'digits', 'wine', 'iris', 'diabetes')
    """
    return ("wilt", *CARRIED)


def load(name: str) -> Dataset:
    """Load a bundled set.

    ``name`` is one of :func:`names`. The arrays are fresh, free to be changed.

    Raises
    ------
    DataError
        If there is no set of that name.
    FileError
        If the bundled file is missing or is not the one that was published with the package.

    Examples
    --------
    >>> wilt = load("wilt")
    >>> wilt
    Dataset(name='wilt', task='binary', positive=1)
    >>> wilt.X.shape, int(wilt.y.sum())
    ((4839, 5), 261)
    """
    if name == "wilt":
        return _wilt()
    if name in CARRIED:
        return _from_scikit_learn(name, CARRIED[name])
    near = nearest(name, names())
    hint = f'Did you mean "{near}"? ' if near else ""
    raise DataError(f'there is no bundled set "{name}". {hint}There are {listing(names())}.')


def _wilt() -> Dataset:
    import pandas as pd

    text = gzip.decompress(_verified(_FOLDER / "wilt.csv.gz", _WILT_SHA256))
    rows = pd.read_csv(io.BytesIO(text), **exact_floats())
    return Dataset(
        name="wilt",
        X=rows.drop(columns=["target", "split"]),
        y=rows["target"].to_numpy(np.int8),
        task="binary",
        positive=1,
        split=rows["split"].to_numpy(dtype=np.str_),
        description=_WILT,
    )


def _from_scikit_learn(name: str, row: Carried) -> Dataset:
    from sklearn import datasets

    bunch = getattr(datasets, row.loader)(as_frame=True)
    y = bunch.target.to_numpy(copy=True)
    positive = None
    if row.positive_code is not None:
        y, positive = (y == row.positive_code).astype(np.int8), 1
    return Dataset(name, bunch.data, y, row.task, positive, None, row.description)


def _verified(file: Traversable, sha256: str) -> bytes:
    """Bytes of a bundled file, if they are the published ones."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FileError(
            f'the bundled file "{file.name}" cannot be read ({error.strerror}). '
            "Install setpoint again."
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise FileError(
            f'the bundled file "{file.name}" is not the published one: its sha256 begins '
            f"{found[:12]}, not {sha256[:12]}. Install setpoint again."
        )
    return content

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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from setpoint._core.errors import DataError, FileError
from setpoint._core.words import listing, nearest
from setpoint.datasets.text_files import exact_floats

if TYPE_CHECKING:
    import pandas as pd


# The sets scikit-learn carries: a row says which loader, what task, whose data.


Task = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True)
class Carried:
    """A set inside scikit-learn; ``positive_code`` is its code for our positive label 1."""

    loader: str
    task: Task
    description: str
    positive_code: int | None = None


def _uci(what: str, citation: str, doi: str) -> str:
    source = f"UCI Machine Learning Repository, doi:10.24432/{doi}, CC BY 4.0"
    return f"{what} {citation}, {source}; the copy in scikit-learn."


CARRIED: dict[str, Carried] = {
    "breast-cancer": Carried(
        "load_breast_cancer",
        "binary",
        _uci(
            "Cell nuclei of 569 breast masses; 212 malignant (1, where scikit-learn has 0), 357 "
            "benign (0).",
            "Wolberg, W., Mangasarian, O., Street, N. and Street, W. (1993), Breast Cancer "
            "Wisconsin (Diagnostic)",
            "C5DW2B",
        ),
        positive_code=0,
    ),
    "digits": Carried(
        "load_digits",
        "multiclass",
        _uci(
            "1797 handwritten digits of 8 × 8 pixels; classes 0 to 9.",
            "Alpaydin, E. and Kaynak, C. (1998), Optical Recognition of Handwritten Digits",
            "C50P49",
        ),
    ),
    "wine": Carried(
        "load_wine",
        "multiclass",
        _uci(
            "Chemical analysis of 178 wines of three cultivars, classes 0 to 2.",
            "Aeberhard, S. and Forina, M. (1992), Wine",
            "C5PC7J",
        ),
    ),
    "iris": Carried(
        "load_iris",
        "multiclass",
        _uci(
            "Four measures of 150 irises; 0 setosa, 1 versicolor, 2 virginica.",
            "Fisher, R. (1936), Iris",
            "C56C76",
        ),
    ),
    "diabetes": Carried(
        "load_diabetes",
        "regression",
        "Progression of diabetes in 442 patients a year after baseline; ten features, centred and "
        "scaled. Efron, B., Hastie, T., Johnstone, I. and Tibshirani, R. (2004), Least Angle "
        "Regression, Annals of Statistics 32(2); the copy in scikit-learn, which states no licence "
        "for the data.",
    ),
}


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
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise FileError(
            f'the bundled file "{file.name}" is not the published one: its sha256 begins '
            f"{digest[:12]}, not {sha256[:12]}. Install setpoint again."
        )
    return content

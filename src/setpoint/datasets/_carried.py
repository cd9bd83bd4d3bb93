"""The sets scikit-learn carries: a row says which loader, what task, whose data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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

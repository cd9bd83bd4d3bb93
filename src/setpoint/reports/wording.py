"""Metrics in words a manager understands, told of rows with or without a named positive."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CLAUSES = {
    "precision": "of the rows it flags, {much} {are}",
    "recall": "it finds {much} of {them}",
    "fpr": "it wrongly flags {much} of the other rows",
    "fnr": "it misses {much} of {them}",
    "specificity": "it leaves alone {much} of the other rows",
    "npv": "of the rows it does not flag, {much} are rightly left alone",
    "fdr": "of the rows it flags, {much} are flagged wrongly",
    "accuracy": "it is right on {much} of all rows",
    "error_rate": "it is wrong on {much} of all rows",
    "positive_rate": "it flags {much} of all rows",
    "coverage": "it decides {much} of all rows",
    "selective_risk": "of the rows it decides, {much} are decided wrongly",
}
_LEAST = {">=": "at least ", "<=": "at most ", "==": "exactly "}
_SIGNS = {">=": "≥", "<=": "≤", "==": "="}


@dataclass(frozen=True)
class Words:
    """How rows of the positive class are spoken of."""

    target: str
    positive: str | None

    @property
    def are(self) -> str:
        """…are of the positive class."""
        return "are positive" if self.positive is None else f"have {self.named}"

    @property
    def them(self) -> str:
        """All rows of the positive class."""
        return "all positive rows" if self.positive is None else f"all rows with {self.named}"

    @property
    def named(self) -> str:
        """The positive class by its name."""
        return "positive" if self.positive is None else f"{self.target} = {self.positive}"

    def limit(self, metric: str, op: str, asked: float) -> str:
        """A limit as a clause.

        Examples
        --------
        >>> Words("fraud", "1").limit("precision", ">=", 0.9)
        'of the rows it flags, at least 90% have fraud = 1'
        >>> Words("fraud", None).limit("f1", ">=", 0.9)
        'its f1 is at least 0.9'
        """
        if metric in _CLAUSES:
            return self._clause(metric, _LEAST[op] + percent(asked))
        return f"its {metric} is {_LEAST[op]}{asked:.4g}"

    @staticmethod
    def knows(metric: str) -> bool:
        """Whether there are plain words for a metric."""
        return metric in _CLAUSES

    def figure(self, metric: str, value: float) -> str:
        """A figure as a clause.

        Examples
        --------
        >>> Words("fraud", None).figure("recall", 0.715)
        'it finds 71.5% of all positive rows'
        """
        if metric in _CLAUSES:
            return self._clause(metric, percent(value))
        return f"its {metric} is {value:.4g}"

    def _clause(self, metric: str, much: str) -> str:
        return _CLAUSES[metric].format(much=much, are=self.are, them=self.them)


def percent(share: float) -> str:
    """A share as a percentage of three digits.

    Examples
    --------
    >>> percent(0.9), percent(0.0123), percent(0.99951)
    ('90%', '1.23%', '99.95%')
    """
    digits = 4 if share > 0.99 else 3
    return f"{100 * share:.{digits}g}%"


def signed(constraint: str) -> str:
    """A constraint with the signs of print: precision ≥ 0.9."""
    for plain, sign in _SIGNS.items():
        constraint = constraint.replace(f" {plain} ", f" {sign} ")
    return constraint


def labelled(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Lines of a block of text as label and words, where a wide gap parts them.

    Examples
    --------
    >>> labelled(["binding   precision >= 0.7", "          and fpr <= 0.1", "Done."])
    [('binding', 'precision ≥ 0.7'), ('', 'and fpr ≤ 0.1'), ('', 'Done.')]
    """
    pairs = []
    for line in lines:
        *label, words = re.split(r"\s{2,}", line.strip(), maxsplit=1)
        pairs.append((label[0] if label else "", signed(words)))
    return pairs


def sentence(*clauses: str) -> str:
    """Clauses as one sentence, the first letter upper case."""
    text = "; ".join(filter(None, clauses))
    return f"{text[:1].upper()}{text[1:]}." if text else ""

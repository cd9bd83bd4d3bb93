"""Rows parted by their jobs: folds that fit and choose, and rows that only certify.

    rows = certify ∪ train,   train = fit rows and held rows of the folds

Every fold fits on its fit rows and scores its held rows; the scores of all held rows choose the
operating point. The certify rows are touched once, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, KindError, Name
from setpoint._core.options import number, whole
from setpoint._core.words import listing
from setpoint.datasets.columns.column_names import quoted
from setpoint.datasets.columns.dates import moments
from setpoint.datasets.stratified_split import PROOF, ByClass, ByTime, Folds, Parting, rarest_label

WORDS = ("train", "tune", "certify")
ALIASES = {
    **{word: word for word in WORDS},
    **dict.fromkeys(("valid", "validation", "dev"), "tune"),
    **dict.fromkeys(("test", "holdout"), "certify"),
}


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of each job, as sorted indices into the table.

    Attributes
    ----------
    folds : tuple of (fit rows, held rows)
        One pair a fold. The held rows of two folds have nothing in common.
    certify : numpy.ndarray of int
        Rows that nothing else touches; empty where none are kept.
    how : str
        One sentence: how the rows were parted.
    notes : tuple of str
        What the user may want to know, in sentences.
    """

    folds: Folds
    certify: np.ndarray
    how: str
    notes: tuple[str, ...] = ()

    @property
    def held(self) -> np.ndarray:
        """All held rows: their out-of-fold scores choose the operating point."""
        return np.unique(np.concatenate([validation for _, validation in self.folds]))

    @property
    def train(self) -> np.ndarray:
        """All rows that are fitted on or held: every row but those that certify."""
        return np.unique(np.concatenate([rows for fold in self.folds for rows in fold]))

    @property
    def shared(self) -> bool:
        """Whether a fold holds rows that it also fits, since there were too few to be parted."""
        return any(len(np.intersect1d(fit, validation)) > 0 for fit, validation in self.folds)

    def fold_of(self, n: int) -> np.ndarray:
        """The fold that holds each of n rows, −1 for a row that none holds; shape (n,)."""
        fold = np.full(n, -1, dtype=np.intp)
        for k, (_, validation) in enumerate(self.folds):
            fold[validation] = k
        return fold


def part(
    y: Any,
    *,
    certify_size: float = 0.25,
    folds: int = 5,
    seed: int = 0,
    split: Any = None,
    together: Any = None,
    time: Any = None,
    least: int = 2,
) -> Parts:
    """Part rows into folds and a certify part, by class.

    Parameters
    ----------
    y : array-like
        (n,) classes, or (n, L) of 0 and 1, parted by the rarest label that has rows enough.
    certify_size : float
        Share of the rows kept to certify, in [0, 1).
    folds : int
        2 or more: every other row is held once and fitted on in all other folds. 1: one fold, which
        holds a quarter of them. Fewer folds are made where the rows are too few for so many.
    seed : int
    split : array-like of text, shape (n,), optional
        The user's own parts: train, tune or certify a row (also valid, validation, dev for tune;
        test, holdout for certify). Train and tune make one fold; without tune, the train rows are
        cross-fitted. ``certify_size`` is then of no effect.
    together : array-like, shape (n,), optional
        Rows of one id are never parted.
    time : array-like, shape (n,), optional
        Numbers or dates. The latest rows certify, and each fold holds rows later than those it
        fits; rows of one time are never parted. The earliest rows are held in no fold.
    least : int
        Rows that each fold must fit and hold of at least two classes.

    Returns
    -------
    Parts
        Where a part to certify would have fewer than 2 rows of a second class, or leave too few
        for two folds, none is kept; where the rows are too few for any fold, one fold fits and
        holds the same rows. The notes say so.

    Raises
    ------
    DataError
        If lengths differ, an id or a time is missing, or ``split`` holds another word, no train
        rows or rows of one id in several parts.
    KindError
        If an argument is of the wrong kind, or ``together`` and ``time`` are given at once.

    Examples
    --------
    >>> parts = part(np.array([0] * 60 + [1] * 20), folds=3)
    >>> parts.how
    '20 of 80 rows kept to certify, 60 cross-fitted in 3 folds, parted by class (seed 0).'
    >>> [(len(fit), len(held)) for fit, held in parts.folds]
    [(40, 20), (40, 20), (40, 20)]
    """
    y = np.asarray(y)
    _check(y, certify_size, folds, least, seed)
    if together is not None and time is not None:
        raise KindError(
            "{argument} and {time} cannot be combined: an id with rows before and after a cut "
            "would have to be parted; give one of them.",
            argument=Name("together"),
            time=Name("time"),
        )
    labels = y if y.ndim == 1 else rarest_label(y, 2 * least)
    codes = np.unique(labels, return_inverse=True)[1]
    way: Parting = ByClass(codes, least, seed)
    if together is not None:
        way = ByClass(codes, least, seed, _ids(together, len(y)))
    elif time is not None:
        way = ByTime(codes, least, _ranks(time, len(y)))
    if split is not None:
        return _by_user(split, way, codes, folds)
    everything = np.arange(len(y))
    certify = way.certify(everything, float(certify_size)) if certify_size else everything[:0]
    notes = []
    pairs = way.folds(np.setdiff1d(everything, certify), folds)
    if not pairs and len(certify):
        certify = everything[:0]
        pairs = way.folds(everything, folds)
    if certify_size and not len(certify):
        notes.append(
            f"no rows are kept to certify: {certify_size:.0%} of {len(y):,} rows would leave fewer "
            f"than {PROOF} rows of a class to certify, or fewer than {2 * least} to fit and tune."
        )
    return _made(pairs, certify, np.setdiff1d(everything, certify), way, folds, notes)


def _made(
    pairs: Folds,
    certify: np.ndarray,
    rest: np.ndarray,
    way: Parting,
    folds: int,
    notes: list[str],
    by_user: str = "",
) -> Parts:
    """Say how the rows were parted; without a fold that can be, fit and hold the same rows."""
    sentence = f"{len(certify):,} of {len(certify) + len(rest):,} rows kept to certify, "
    if not len(certify):
        sentence = "No rows kept to certify, "
    if not pairs:
        notes.append(
            f"{len(rest):,} rows are too few to be parted, or too few of them are of a class: the "
            "operating point is chosen on the rows the model was fitted on, which flatters it."
        )
        how = f"{sentence}{len(rest):,} fitted on and tuned on alike{by_user}."
        return Parts(((rest, rest),), certify, how, tuple(notes))
    if len(pairs) < folds:
        notes.append(
            f"{len(pairs)} fold{'s' * (len(pairs) > 1)} instead of {folds}: there are too few rows "
            "of a class for more."
        )
    fitted_only = len(rest) - sum(len(validation) for _, validation in pairs)
    if len(pairs) > 1 and fitted_only and isinstance(way, ByClass):
        notes.append(
            f"rows fitted on in every fold and held in none: {fitted_only:,}, since no other fold "
            "has rows of their class."
        )
    if len(pairs) == 1:
        fit, validation = (len(rows) for rows in pairs[0])
        work = f"{fit:,} fitted on, {validation:,} tuned on"
    elif isinstance(way, ByTime):
        work = f"{len(rest):,} in {len(pairs)} folds that each tune on what comes later"
    else:
        work = f"{len(rest):,} cross-fitted in {len(pairs)} folds"
    return Parts(pairs, certify, f"{sentence}{work}, {way.how}{by_user}.", tuple(notes))


def _by_user(split: Any, way: Parting, codes: np.ndarray, folds: int) -> Parts:
    """The user's parts: one fold from train to tune, or folds inside train."""
    names = _sized(split, len(codes), "split")
    words, notes = _words(names)
    train, tune, certify = (np.flatnonzero(words == word) for word in WORDS)
    if not len(train):
        raise DataError(
            '{argument} has no "train" rows; it holds {names}. Name some rows train (the words '
            "are {words}).",
            argument=Name("split"),
            names=quoted(names.unique(), most=8),
            words=listing(WORDS),
        )
    if isinstance(way, ByClass) and way.ids is not None:
        _refuse_parted(way.ids, words)
    if isinstance(way, ByTime):
        jobs = [rows for rows in (train, tune, certify) if len(rows)]
        late = [way.time[rows].min() for rows in jobs[1:]]
        early = [way.time[rows].max() for rows in jobs[:-1]]
        if any(a <= b for a, b in zip(late, early, strict=True)):
            notes.append("the parts of split overlap in time: later rows do not only certify.")
    if not len(certify):
        notes.append("split names no certify rows, so nothing can be certified.")
    if len(tune):
        sentence = f"{len(certify):,} rows to certify, " if len(certify) else ""
        how = f"{sentence}{len(train):,} fitted on, {len(tune):,} tuned on, parted by the user."
        _say_rare(codes, {"train": train, "tune": tune, "certify": certify}, notes)
        return Parts(((train, tune),), certify, how, tuple(notes))
    _say_rare(codes, {"certify": certify}, notes)
    pairs = way.folds(train, folds)
    return _made(pairs, certify, train, way, folds, notes, "; certify rows by the user")


def _words(names: Any) -> tuple[np.ndarray, list[str]]:
    """The job of each row, and which words were taken for others."""
    import pandas as pd

    codes, levels = pd.factorize(pd.Series(names).astype(object), use_na_sentinel=True)
    if (codes < 0).any():
        row = int((codes < 0).argmax()) + 1
        raise DataError(
            "{argument} is missing in data row {place}; name it {words}.",
            argument=Name("split"),
            place=row,
            words=", ".join(WORDS),
        )
    plain = [str(word).strip().lower() for word in levels]
    for code, word in enumerate(plain):
        if word not in ALIASES:
            row = int((codes == code).argmax()) + 1
            raise DataError(
                '{argument} is "{word}" in data row {place}; the words are {words}.',
                argument=Name("split"),
                word=levels[code],
                place=row,
                words=listing(WORDS),
            )
    jobs = np.array([ALIASES[word] for word in plain], dtype=object)
    other = sorted({(word, ALIASES[word]) for word in plain if word not in WORDS})
    return jobs[codes], [f'split: "{word}" rows are taken as {job} rows.' for word, job in other]


def _refuse_parted(ids: np.ndarray, words: np.ndarray) -> None:
    order = np.argsort(ids, kind="stable")
    same = ids[order][1:] == ids[order][:-1]
    apart = np.flatnonzero(same & (words[order][1:] != words[order][:-1]))
    if len(apart):
        a, b = order[apart[0] : apart[0] + 2]
        raise DataError(
            f"data rows {a + 1} and {b + 1} have one id (together), but split names them "
            f'"{words[a]}" and "{words[b]}"; give the rows of one id the same word.'
        )


def _say_rare(codes: np.ndarray, parts: dict[str, np.ndarray], notes: list[str]) -> None:
    for word, rows in parts.items():
        fewest = np.bincount(codes[rows], minlength=int(codes.max()) + 1).min()
        if len(rows) and fewest < PROOF:
            notes.append(f"the {word} rows named by split have {fewest} of a class.")


def _ids(together: Any, n: int) -> np.ndarray:
    import pandas as pd

    codes, _ = pd.factorize(pd.Series(_sized(together, n, "together")), use_na_sentinel=True)
    if (codes < 0).any():
        row = int((codes < 0).argmax()) + 1
        raise DataError(
            "{argument} is missing in data row {place}; give each row an id, or drop it.",
            argument=Name("together"),
            place=row,
        )
    return codes


def _ranks(time: Any, n: int) -> np.ndarray:
    times, ranks = np.unique(moments(_sized(time, n, "time"), "time"), return_inverse=True)
    if len(times) == 1:
        raise DataError(
            "{argument} is the same in every row; rows of one time cannot be parted by it.",
            argument=Name("time"),
        )
    return ranks


def _sized(values: Any, n: int, what: str) -> Any:
    """One-dimensional values, one a row."""
    import pandas as pd

    shape = getattr(values, "shape", (len(values),))
    if len(shape) != 1:
        raise DataError(
            "{argument} has shape {shape}; give one value a row: shape ({n},).",
            argument=Name(what),
            shape=tuple(shape),
            n=n,
        )
    column = values if isinstance(values, pd.Series) else pd.Series(values)
    if len(column) != n:
        raise DataError(
            "{argument} has {values:,} values for {n:,} rows; give one a row.",
            argument=Name(what),
            values=len(column),
            n=n,
        )
    return column.reset_index(drop=True)


def _check(y: np.ndarray, certify_size: Any, folds: Any, least: Any, seed: Any) -> None:
    if y.ndim not in (1, 2) or len(y) == 0:
        raise DataError(f"y has shape {y.shape}; give one class a row, or one column a label.")
    number("certify_size", certify_size, 0, 1, open_high=True, error=KindError)
    whole("folds", folds, 1, error=KindError)
    whole("least", least, 1, error=KindError)
    whole("seed", seed, 0, error=KindError)

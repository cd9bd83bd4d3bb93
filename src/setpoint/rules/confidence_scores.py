"""Selection scores: how sure a classifier is of its decision, read from its logits.

With logits z₁ ≥ z₂ ≥ … ≥ z_K of a row and p = softmax(z):

========== ================================ ====================================
name       textbook                         computed, higher is more confident
========== ================================ ====================================
sr_max     max p                            z₁ − log Σ_{j>1} exp z_j
sr_ent     Σ p log p                        −log(−Σ p log p)
sr_doctor  1 − 1 / Σ p²                     −log Σ p (1 − p)
rl_max     z₁                               z₁
rl_conf_m  z₁ − z₂                          z₁ − z₂
rl_geo_m   the same of z_j / ‖w_j‖          the same of z_j / ‖w_j‖
========== ================================ ====================================

The right column rises strictly with the left one, so both rank the rows alike. But a probability is
1.0 in float32 once the first logit is 17.4 above the rest, and beyond that all rows are tied; the
right column is worked out from differences and logarithms alone and keeps them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, greater, highest, is_tensor, join, namespace, to_numpy
from setpoint._core.errors import DataError, KindError, RowNumber, Spelling
from setpoint._core.options import is_real
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.rows.raw_arrays import array_of, floating, numeric

BLOCK = 1 << 22  #: entries of the logits that are worked on at a time
LARGEST = 1e150  #: beyond it a product of two logits, or their difference, may leave float64
FLOOR = math.log(5e-324)  #: stands for log 0: below the logarithm of every positive float64
TINY = -37.0  #: log(log(1 + exp x)) = x to the last digit from here down


@dataclass(frozen=True)
class Confidence:
    """One selection score.

    Parameters
    ----------
    name, formula : str
    function : callable
        From logits (n, K), float64, to scores (n,). The order of the columns makes no difference,
        not even in the last digit.
    needs_head : bool
        The logits are divided by the norms of the last layer's rows first, and the predicted class
        is the argmax of what results.
    """

    name: str
    formula: str
    function: Callable[[Array], Array]
    needs_head: bool = False


def confidence(name: str, logits: Any, head: Any = None) -> tuple[Array, Array]:
    """Confidence of each row and the class it is confident of.

    Parameters
    ----------
    name : str
        One of ``CONFIDENCES``.
    logits : array or tensor of shape (n, K)
        K >= 2; of probabilities pass :func:`from_probabilities`. Half precision is read exactly.
    head : array or tensor of shape (K, d) or (K,), optional
        Only for rl_geo_m: the weight matrix of the last layer, or the norms of its rows.

    Returns
    -------
    confidence : array or tensor of shape (n,)
        float64 (float32 on a device that lacks it), on the device of the logits; no gradient
        passes through it.
    predicted : array or tensor of shape (n,)
        The column that is decided for, the first of equals: the argmax of the logits, or that of
        z_j / ‖w_j‖ for rl_geo_m, which may be another.

    Notes
    -----
    A score has the resolution of float64. At the top nothing is lost: rows are told apart at any
    scale of the logits. At the bottom, entropy and doctor depart from those of a uniform p by the
    square of the logits' differences; where these are below about 1e-7 their rows are tied.

    References
    ----------
    The margins: Liang, Peng, Sun, "Selective classification under distribution shifts", TMLR 2024.
    Doctor: Granese et al., "DOCTOR: a simple method for detecting misclassification errors", 2021.

    Examples
    --------
    >>> score, predicted = confidence("rl_conf_m", [[2.0, 0.5, 0.0], [1.0, 4.0, 0.0]])
    >>> score.tolist(), predicted.tolist()
    ([1.5, 3.0], [0, 1])
    >>> score, _ = confidence("sr_max", [[50.0, 0.0], [60.0, 0.0]])  # max p is 1.0 for both
    >>> score.tolist()
    [50.0, 60.0]
    """
    row = _row(name)
    z = _matrix(logits, "logits")
    norms = _norms(row, z, head)
    scores, classes = [], []
    step = max(1, BLOCK // z.shape[1])
    for start in range(0, z.shape[0], step):
        block = _wide(z[start : start + step])
        _refuse_extremes(block, start)
        if norms is not None:
            block = block / norms
        scores.append(row.function(block))
        classes.append(block.argmax(1))
    return join(scores, 0), join(classes, 0)


def from_probabilities(p: Any) -> Array:
    """The logits log p of probabilities, such as those of ``predict_proba``.

    A zero is read as 5e-324, the least positive number, so that every logit is finite. What the
    probabilities have lost by rounding cannot be won back: pass logits where there are any. Of
    these logits rl_max is log max p.

    Parameters
    ----------
    p : array or tensor of shape (n, K)
        In [0, 1], each row summing to 1 within 1e-3.

    Examples
    --------
    >>> confidence("rl_conf_m", from_probabilities([[0.8, 0.2], [0.5, 0.5]]))[0].round(4).tolist()
    [1.3863, 0.0]
    """
    a = _wide(_matrix(p, "probabilities"))
    inside = (a >= 0) & (a <= 1)  # a NaN is not
    if not bool(inside.all()):
        row, column = np.argwhere(~to_numpy(inside))[0].tolist()
        raise DataError(
            "probabilities hold {value:g} {row}, column {column}; they lie in [0, 1]. Logits need "
            "no conversion",
            value=float(a[row, column]),
            row=RowNumber(row),
            column=column,
        )
    off = abs(to_numpy(a.sum(1)) - 1)
    if (off > 1e-3).any():
        row = int(off.argmax())
        raise DataError(
            f"the probabilities of row {row} sum to {float(a[row].sum()):.6g}; each row must sum "
            "to 1 within 0.001. Divide by the sum, or take the softmax in float32"
        )
    xp = namespace(a)
    zero = a == 0
    return xp.where(zero, FLOOR, xp.log(a + zero))


# --- the scores ------------------------------------------------------------------------------


def sr_max(z: Array) -> Array:
    """z₁ − log Σ_{j>1} exp z_j = log(p₁ / (1 − p₁)), the logit of the greatest probability."""
    return -_rest(_ascending(z))


def sr_ent(z: Array) -> Array:
    """−log H with H = −Σ p_j log p_j, by log H = logsumexp(log p_j + log(−log p_j))."""
    xp = namespace(z)
    s = _ascending(z)
    rest = _rest(s)
    surprise = xp.log1p(xp.exp(rest))  # −log p₁
    low = s[:, :-1] - s[:, -1:] - surprise[:, None]  # log p_j, j > 1
    seen = greater(rest, xp.full_like(rest, TINY))
    log_surprise = xp.where(rest < TINY, rest, xp.log(xp.log1p(xp.exp(seen))))
    return -_log_sum(low + xp.log(-low), log_surprise - surprise)


def sr_doctor(z: Array) -> Array:
    """−log g with g = Σ p_j (1 − p_j) = 1 − Σ p_j², and 1 − p₁ as a sum over the others."""
    xp = namespace(z)
    s = _ascending(z)
    rest = _rest(s)
    surprise = xp.log1p(xp.exp(rest))  # −log p₁, while log(1 − p₁) = rest − surprise
    low = s[:, :-1] - s[:, -1:] - surprise[:, None]  # log p_j <= −log 2, j > 1
    return -_log_sum(low + xp.log1p(-xp.exp(low)), rest - 2 * surprise)


def rl_max(z: Array) -> Array:
    """z₁, the greatest logit."""
    return highest(z, 1)


def rl_margin(z: Array) -> Array:
    """z₁ − z₂, the greatest logit less the second."""
    if is_tensor(z):
        two = z.topk(2, 1).values
        return two[:, 0] - two[:, 1]
    two = np.partition(z, -2, axis=1)
    return two[:, -1] - two[:, -2]


def _ascending(z: Array) -> Array:
    """Each row sorted: sums then do not depend on the order of the classes."""
    return z.sort(1).values if is_tensor(z) else np.sort(z, axis=1)


def _rest(s: Array) -> Array:
    """The logarithm of Σ_{j>1} exp(z_j − z₁) = (1 − p₁) / p₁, for rows in ascending order."""
    xp = namespace(s)
    others = xp.exp(s[:, :-2] - s[:, -2:-1]).sum(1)  # in units of exp z₂; 0 for two classes
    return s[:, -2] - s[:, -1] + xp.log1p(others)


def _log_sum(many: Array, one: Array) -> Array:
    """The logarithm of Σ_j exp many_j + exp one, for each row."""
    xp = namespace(many)
    top = greater(highest(many, 1), one)
    return top + xp.log(xp.exp(many - top[:, None]).sum(1) + xp.exp(one - top))


CONFIDENCES: dict[str, Confidence] = {
    row.name: row
    for row in (
        Confidence("sr_max", "log(max p / (1 - max p)), p = softmax(z)", sr_max),
        Confidence("sr_ent", "-log(-sum_j p_j log p_j), p = softmax(z)", sr_ent),
        Confidence("sr_doctor", "-log(sum_j p_j (1 - p_j)), p = softmax(z)", sr_doctor),
        Confidence("rl_max", "z_(1)", rl_max),
        Confidence("rl_conf_m", "z_(1) - z_(2)", rl_margin),
        Confidence("rl_geo_m", "u_(1) - u_(2), u_j = z_j / ||w_j||", rl_margin, needs_head=True),
    )
}


# --- the door --------------------------------------------------------------------------------


def _row(name: Any) -> Confidence:
    if isinstance(name, str) and name in CONFIDENCES:
        return CONFIDENCES[name]
    hint = did_you_mean(name, CONFIDENCES, f"choose from {listing(CONFIDENCES)}.")
    raise KindError(f"there is no confidence {name!r}: {hint}")


def _matrix(x: Any, name: str) -> Array:
    """A matrix (n, K) of real numbers, n >= 1 and K >= 2, without a gradient."""
    a = array_of(x, name, 2)
    if str(a.dtype) in ("bool", "torch.bool"):
        raise KindError(f"{name} are booleans; pass the model's numbers, one column per class")
    a = numeric(a, name)
    if a.shape[0] == 0:
        raise DataError(f"{name} have no rows; there is nothing to be confident of")
    if a.shape[1] < 2:
        raise DataError(
            f"{name} have {a.shape[1]} column; a class is chosen among two or more. Of one logit z "
            "of the positive class pass the columns 0 and z, of one probability p 1 - p and p"
        )
    return a.detach() if is_tensor(a) else a


def _wide(a: Array) -> Array:
    """Float64 (float32 on a device that lacks it), row by row in memory.

    A sum over a row then takes its terms in one order, however the array came to be.
    """
    a = floating(a)
    if is_tensor(a):
        return (a.float() if a.device.type == "mps" else a.double()).contiguous()
    return a.astype(np.float64, order="C", copy=False)


def _refuse_extremes(z: Array, start: int) -> None:
    fine = namespace(z).isfinite(z) & (abs(z) <= LARGEST)
    if bool(fine.all()):
        return
    row, column = np.argwhere(~to_numpy(fine))[0].tolist()
    value = float(z[row, column])
    way = "scale them down" if math.isfinite(value) else "drop or repair such rows"
    raise DataError(
        "logits hold {value:g} {row}, column {column}; {way}",
        value=value,
        row=RowNumber(start + row),
        column=column,
        way=way,
    )


def _norms(row: Confidence, z: Array, head: Any) -> Array | None:
    """‖w_j‖ for each class, beside the logits; None where the score does without."""
    if not row.needs_head:
        if head is not None:
            raise KindError(f"{row.name} does not look at the last layer; leave head= out")
        return None
    if head is None:
        raise KindError(
            "{name} {needs}",
            name=row.name,
            needs=Spelling(
                "divides each logit by the norm of its row of the last layer: pass head=, the "
                "weight matrix (K, d) or its row norms (K,)",
                "needs the last layer of the model; on the command line go by rl_conf_m",
            ),
        )
    norms = head_norms(head, z.shape[1])
    return _wide(namespace(z).as_tensor(norms, device=z.device)) if is_tensor(z) else norms


def head_norms(head: Any, classes: int) -> np.ndarray:
    """The norm ‖w_j‖ of each class from the weights of the last layer, or the norms themselves."""
    flat = isinstance(head, list | tuple) and all(map(is_real, head))
    w = array_of(head, "head", 1 if flat or getattr(head, "ndim", 2) == 1 else 2)
    w = to_numpy(numeric(w, "head")).astype(np.float64)
    if w.shape[0] != classes:
        raise DataError(
            f"head has {w.shape[0]} rows and the logits have {classes} columns; pass one row of "
            "the weight matrix, or one norm, for each class"
        )
    norms = w if w.ndim == 1 else np.linalg.norm(w, axis=1)
    bad = ~((norms > 1 / LARGEST) & (norms < LARGEST))
    if bad.any():
        j = int(bad.argmax())
        raise DataError(
            f"head has the norm {norms[j]:g} for class {j}; a logit is divided by a norm, which "
            "must be positive and finite. Use rl_conf_m for such a layer"
        )
    return norms

"""Plots of an evaluation. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from setpoint._core.arrays import to_numpy
from setpoint._core.axes import new_axes
from setpoint._core.errors import DataError
from setpoint.robustness.attack_outcomes import Level


def plot_accuracy(
    curve: Sequence[Level], levels: Sequence[Level], distance: str, ax: Any = None
) -> Any:
    """Draw the share of images that is left over eps, with its interval; gives the figure.

    Parameters
    ----------
    curve : sequence of Level
        The least eps first.
    levels : sequence of Level
        The radii that were asked for, marked.
    distance : str
        Its name.
    ax : matplotlib axes, optional
        A new figure's without it.
    """
    ax = new_axes(ax)
    x = [level.eps for level in curve]
    low, high = zip(*(level.interval for level in curve), strict=True)
    percent = f"{100 * curve[0].confidence:g}%"
    ax.fill_between(x, low, high, step="post", alpha=0.18, linewidth=0, label=f"{percent} interval")
    ax.step(x, [level.accuracy for level in curve], where="post", linewidth=1.6, label="left")
    ax.plot(
        [level.eps for level in levels],
        [level.accuracy for level in levels],
        "o",
        color="black",
        markersize=5,
        label="attacked at",
    )
    ax.set_xlabel(f"eps ({distance})")
    ax.set_ylabel("robust accuracy, at most")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(left=0)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax.figure


def plot_radii(
    least_distances: np.ndarray, correct: np.ndarray, distance: str, ax: Any = None
) -> Any:
    """Draw the least distances at which an attack succeeded as a histogram; gives the figure.

    Images wrong from the start are not drawn, nor those without a success; the title counts them.

    Parameters
    ----------
    least_distances : numpy.ndarray
        (n,) inf where no attack succeeded.
    correct : numpy.ndarray
        (n,) whether the model gets the clean image right.
    distance : str
        Its name.
    ax : matplotlib axes, optional
        A new figure's without it.
    """
    ax = new_axes(ax)
    shown = least_distances[correct & np.isfinite(least_distances)]
    if len(shown):
        ax.hist(shown, bins=min(40, max(8, round(len(shown) ** 0.5))), alpha=0.85)
        middle = float(np.median(shown))
        ax.axvline(middle, linestyle="--", linewidth=1, color="0.3", label=f"median {middle:.3g}")
        ax.legend(frameon=False)
    beyond = int((correct & np.isinf(least_distances)).sum())
    wrong = int((~correct).sum())
    counts = f"{len(shown):,} beaten, {beyond:,} without a success, {wrong:,} wrong before"
    ax.set_title(counts, fontsize="small")
    ax.set_xlabel(f"least {distance} found")
    ax.set_ylabel("images")
    ax.grid(alpha=0.25)
    return ax.figure


# A sheet of examples: the image, what became of it, and the difference, magnified.


Box = tuple[float, float]


def plot_examples(
    clean: Tensor | None,
    points: np.ndarray | None,
    columns: Mapping[str, np.ndarray],
    box: Box,
    count: int = 6,
    shape: tuple[int, ...] | None = None,
) -> Any:
    """Draw beaten images from the least moved to the most; where none is, those that came nearest.

    Parameters
    ----------
    clean, points : arrays (n, *shape)
    columns : mapping
        Of the record.
    box : (float, float)
        What is drawn black and white.
    count : int
        At most so many.
    shape : tuple, optional
        (height, width) or (channels, height, width) of images that are flat vectors.
    """
    if clean is None or points is None:
        raise DataError("the points were not kept; evaluate with keep=True to see them")
    chosen = chosen_rows(columns, count)
    if not len(chosen):
        raise DataError("the model gets no image right, so there is nothing to show")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 1.9 * len(chosen) + 0.3), layout="constrained")
    axes = figure.subplots(len(chosen), 3, squeeze=False)
    for row, at in zip(chosen, axes, strict=True):
        before = as_picture(to_numpy(clean[int(row)]), shape)
        after = as_picture(points[row], shape)
        _draw_row(at, before, after, box, {name: column[row] for name, column in columns.items()})
    return figure


def chosen_rows(columns: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """Which rows are drawn: never one wrong before.

    Of the beaten ones, from the least moved to the most, evenly; where there are none, those that
    came nearest to it by margin.
    """
    beaten = np.flatnonzero(columns["attacked"])
    count = max(1, int(count))
    if len(beaten):
        beaten = beaten[np.argsort(columns["distance"][beaten], kind="stable")]
        places = np.linspace(0, len(beaten) - 1, min(count, len(beaten)))
        return beaten[places.round().astype(int)]
    left = np.flatnonzero(columns["correct"])
    return left[np.argsort(-columns["margin"][left], kind="stable")][:count]


def as_picture(image: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An image as matplotlib draws it: (height, width), or (height, width, 3)."""
    if shape is not None:
        if int(np.prod(shape)) != image.size:
            raise DataError(f"shape={shape} does not hold the {image.size} numbers of an image")
        image = image.reshape(shape)
    if image.ndim == 3 and image.shape[0] == 1:
        return image[0]
    if image.ndim == 3 and image.shape[0] == 3:
        return np.moveaxis(image, 0, 2)
    if image.ndim == 2:
        return image
    raise DataError(
        f"images of shape {image.shape} cannot be drawn; say shape=(height, width) or "
        "shape=(channels, height, width), with 1 or 3 channels"
    )


def _draw_row(at: Any, before: np.ndarray, after: np.ndarray, box: Box, row: Any) -> None:
    low, high = box
    moved = after.astype(np.float64) - before
    size = float(np.abs(moved).max())
    factor = (high - low) / (2 * size) if size else 1.0
    shades = {"cmap": "gray", "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
    at[0].imshow(_unit(before, box), **shades)
    at[1].imshow(_unit(after, box), **shades)
    at[2].imshow(np.clip(0.5 + factor * moved / (high - low), 0, 1), **shades)
    outcome = "beaten" if row["attacked"] else "not beaten"
    at[0].set_title(f"image {row['index']}: {row['label']}", fontsize="small")
    at[1].set_title(f"{outcome}: {row['prediction']}", fontsize="small")
    at[2].set_title(f"difference × {factor:,.3g}", fontsize="small")
    at[2].set_xlabel(f"distance {row['distance']:.3g}", fontsize="small")
    for ax in at:
        ax.set_xticks([])
        ax.set_yticks([])


def _unit(image: np.ndarray, box: Box) -> np.ndarray:
    return np.clip((image.astype(np.float64) - box[0]) / (box[1] - box[0]), 0, 1)

"""The contact sheet: for every image the truth where it is known, the measurement, each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from setpoint._core.arrays import to_numpy
from setpoint.restoration.image_scores import Range

if TYPE_CHECKING:
    from setpoint.restoration.compare import Compared

HIDDEN = (0.36, 0.45, 0.72)  #: what was not measured is drawn in this colour, which no grey has
#: how words are drawn; the name of a file may hold a $, which is no formula
_SMALL, _TITLE = ({"fontsize": size, "parse_math": False} for size in ("small", "medium"))
SHOWN = 8  #: rows of a sheet, without a word from the caller


@dataclass(frozen=True)
class Panel:
    """One picture of a row.

    Attributes
    ----------
    title, caption : str
    shades : array (H, W, 3)
        Between 0 and 1.
    """

    title: str
    caption: str
    shades: np.ndarray


def plot_sheet(compared: Compared, names: Sequence[str] = (), count: int = SHOWN) -> Any:
    """Draw the sheet; gives the figure.

    Parameters
    ----------
    compared : Compared
    names : sequence of str, optional
        Of the images; their numbers without it.
    count : int
        The first so many images.
    """
    from matplotlib.figure import Figure

    many = len(next(iter(compared.restored.values())).image)
    rows = [panels(compared, at) for at in range(max(1, min(count, many)))]
    figure = Figure(
        figsize=(1.7 * len(rows[0]) + 0.3, 1.95 * len(rows) + 0.5), layout="constrained"
    )
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for at, (row, places) in enumerate(zip(rows, axes, strict=True)):
        for panel, ax in zip(row, places, strict=True):
            ax.imshow(panel.shades, interpolation="nearest")
            ax.set_xlabel(panel.caption, **_SMALL)
            ax.set_xticks([])
            ax.set_yticks([])
            if at == 0:
                ax.set_title(panel.title, **_TITLE)
        places[0].set_ylabel(names[at] if names else str(at), **_SMALL)
    if len(rows) < many:
        figure.supxlabel(f"the first {len(rows)} of {many:,} images", **_SMALL)
    return figure


def panels(compared: Compared, at: int) -> list[Panel]:
    """The pictures of one image, from left to right."""
    box = drawn_range(compared)
    pictures = [measured(compared, at, box)]
    if compared.truth is not None:
        pictures.insert(0, Panel("truth", "", as_shades(to_numpy(compared.truth[at]), box)))
    for name, restored in compared.restored.items():
        scored = compared.evaluations.get(name)
        residual = f"residual {float(restored.residual[at]):.3g}"
        label = f"{float(scored.psnr[at]):.2f} dB" if scored else residual
        pictures.append(Panel(name, label, as_shades(to_numpy(restored.image[at]), box)))
        kernel = kernel_of(restored)
        if kernel is not None:
            shown = kernel[min(at, len(kernel) - 1)]
            shades = as_shades(shown, _spread(shown))
            pictures.append(Panel(f"{name}: kernel", "its sum is 1", shades))
    return pictures


def measured(compared: Compared, at: int, box: Range) -> Panel:
    """The measurement: an image, hidden pixels in a colour; what is no image on a log scale."""
    y = to_numpy(compared.measurement[at])
    operator = next(iter(compared.restored.values())).operator
    if y.ndim != 3 or y.shape[0] not in (1, 3):
        blank = np.ones((8, 8, 3))
        return Panel("measurement", f"no image: {' × '.join(map(str, y.shape))}", blank)
    if getattr(operator, "output", "image") != "image" or np.iscomplexobj(y):
        size = np.log1p(np.abs(y).astype(np.float64))
        return Panel("measurement", "sizes, log scale", as_shades(size, (0.0, size.max() or 1.0)))
    shades = as_shades(y, box)
    observed = getattr(operator, "observed", None)
    if observed is None:
        return Panel("measurement", "" if y.shape[-1] > 1 else "one value", shades)
    seen = torch.as_tensor(observed)
    seen = to_numpy(seen[min(at, len(seen) - 1)]).astype(bool)  # (1 or C, H, W)
    hidden = ~np.broadcast_to(seen, y.shape).any(0)
    shades[hidden] = HIDDEN
    return Panel("measurement", f"{hidden.mean():.0%} hidden", shades)


def as_shades(image: np.ndarray, box: Range) -> np.ndarray:
    """An image (C, H, W) as (H, W, 3) between 0 and 1, clipped; other channels are averaged."""
    low, high = box
    unit = np.clip((image.astype(np.float64) - low) / (high - low), 0, 1)
    if unit.shape[0] != 3:
        unit = np.repeat(unit.mean(0, keepdims=True), 3, axis=0)
    return np.moveaxis(unit, 0, 2).copy()


def drawn_range(compared: Compared) -> Range:
    """The declared range; where that is infinite, the one that the images have."""
    low, high = compared.range
    if np.isfinite([low, high]).all():
        return low, high
    images = [to_numpy(restored.image) for restored in compared.restored.values()]
    return _spread(np.stack(images))


def kernel_of(restored: Any) -> np.ndarray | None:
    """Estimated kernels (B, 1, h, w) of a blind operator that can show them."""
    kernel = getattr(restored.operator, "kernel", None)
    if restored.unknowns is None or not callable(kernel):
        return None
    values = to_numpy(torch.as_tensor(kernel(restored.unknowns)).detach())
    return values.reshape(-1, 1, *values.shape[-2:])


def _spread(values: np.ndarray) -> Range:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low, low + 1.0)

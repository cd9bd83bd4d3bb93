"""The page: one HTML file with its pictures inside, made from the record."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.restoration.contact_sheet import panels
from setpoint.restoration.image_files import as_png

if TYPE_CHECKING:
    from setpoint.restoration.compare import Compared

MOST = 24  #: images that are shown; a page of thousands would not open
_TEMPLATE = "restoration.html.j2"


def page_of(
    record: Mapping[str, Any], compared: Compared, names: Sequence[str], count: int = MOST
) -> str:
    """The HTML of a comparison; every text in it is escaped, and it needs no other file.

    Parameters
    ----------
    record : mapping
        As :func:`setpoint.restoration.storage.as_json` makes it.
    compared : Compared
        For the pictures.
    names : sequence of str
        Of the images.
    count : int
        The first so many are shown.
    """
    methods = record["methods"]
    rows = [
        {
            "name": names[at],
            "panels": [
                {"title": p.title, "caption": p.caption, "source": inlined(p.shades)}
                for p in panels(compared, at)
            ],
            "methods": [{"method": m["method"], **m["images"][at]} for m in methods],
        }
        for at in range(min(count, len(names)))
    ]
    return _template().render(
        r=record,
        rows=rows,
        scored=any(m["psnr"] for m in methods),
        alike=any(m["ssim"] for m in methods),
        oracle=any(m["oracle_psnr"] for m in methods),
        manifold=any(m["manifold"] for m in methods),
        pair=pair,
        at=at_four,
    )


def inlined(shades: np.ndarray) -> str:
    """A picture (H, W, 3) between 0 and 1 as the address of an image that is in the page."""
    png = as_png(np.moveaxis(shades, 2, 0), (0.0, 1.0))
    return "data:image/png;base64," + base64.b64encode(png).decode()


def pair(value: Any, digits: int) -> str:
    """A mean with its standard error.

    >>> pair((20.123, 0.5), 2), pair((20.123, None), 2), pair(("inf", None), 2), pair(None, 2)
    ('20.12 ± 0.50', '20.12', 'inf', '–')
    """
    if value is None:
        return "–"
    mean, error = value
    text = mean if isinstance(mean, str) else f"{mean:.{digits}f}"
    return f"{text} ± {error:.{digits}f}" if isinstance(error, float) else text


def at_four(value: Any) -> str:
    """A number in four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@cache
def _template() -> Any:
    import jinja2

    text = (resources.files("setpoint.restoration") / "templates" / _TEMPLATE).read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.from_string(text)

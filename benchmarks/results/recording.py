"""What a benchmark measured, in a small file: a line about the run, then one line a figure.

Both are JSON. The first line is ``{"about": {"command": …, "environment": …, …}}``, the others are
flat records such as ``{"table": "wilt", "seed": 0, "way": …, "recall": …}``. Figures are kept run
by run: means, standard errors and paired differences are taken when the page is made.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from setpoint._core.files import write_text

FOLDER = Path(__file__).parents[1] / "recorded"
DIGITS = 6  #: significant ones of a recorded figure
PACKAGES = ("numpy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Recording:
    """The figures of one benchmark and how they came about."""

    name: str
    about: Mapping[str, Any]
    lines: tuple[Mapping[str, Any], ...]

    def where(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """The lines that have these values."""
        return [x for x in self.lines if all(x.get(k) == v for k, v in wanted.items())]

    def distinct(self, key: str) -> list[Any]:
        """The values of a field, in the order in which they first occur."""
        return list(dict.fromkeys(line[key] for line in self.lines if key in line))


def record(
    name: str,
    command: str,
    lines: Iterable[Mapping[str, Any]],
    *,
    packages: Iterable[str] = PACKAGES,
    folder: Path = FOLDER,
    made_in: Mapping[str, Any] | None = None,
    **about: Any,
) -> Path:
    """Write the file of a benchmark; under a temporary name first, never half of one.

    ``made_in`` is the environment of figures that were made elsewhere.
    """
    where = environment(packages) if made_in is None else made_in
    head = {"about": {"command": command, "environment": where, **about}}
    texts = [json.dumps(_short(x), ensure_ascii=False) for x in (head, *lines)]
    folder.mkdir(exist_ok=True)
    return write_text(folder / f"{name}.json", "\n".join(texts) + "\n")


def read(name: str, folder: Path = FOLDER) -> Recording | None:
    """The recording of that name; None where there is none."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    about, lines = {}, []
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "about" in line:
            about = line["about"]
        else:
            lines.append(line)
    return Recording(name, about, tuple(lines))


def environment(packages: Iterable[str]) -> dict[str, Any]:
    """What figures may depend on, without dates and places: threads and versions."""
    return {
        "python": platform.python_version(),
        "threads": 1,
        **{name: metadata.version(name).partition("+")[0] for name in packages},
    }


def _short(value: Any) -> Any:
    """The same with floats of few digits; numpy's numbers become Python's."""
    if isinstance(value, Mapping):
        return {str(k): _short(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_short(v) for v in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if getattr(value, "ndim", None) == 0:
        return _short(value.item())
    return float(f"{value:.{DIGITS}g}")

"""The report: one record of plain data, read as a page, as text, as a model card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError, SetpointError
from setpoint._core.files import make_folder, write_json, write_text
from setpoint._core.json_codec import plain
from setpoint.decisions.outcome import Outcome
from setpoint.reports.render.model_card import card_of
from setpoint.reports.render.page import page_of
from setpoint.reports.render.text import text_of
from setpoint.rules.certificate import opened

FORMAT = "setpoint report 1"
_SECTIONS: dict[str, type | tuple[type, ...]] = {
    "goal": str,
    "lowered": str,
    "task": dict,
    "verdict": dict,
    "facts": dict,
    "rule": dict,
    "rows": list,
    "figures": list,
    "main": (str, type(None)),
    "fresh": bool,
    "chosen_here": bool,
    "tradeoff": (dict, type(None)),
    "curves": (dict, type(None)),
    "confusion": (dict, type(None)),
    "distribution": (dict, type(None)),
    "calibration": (dict, type(None)),
    "groups": list,
    "comparison": (dict, type(None)),
    "certificate": (dict, type(None)),
    "plan": (dict, type(None)),
    "diagnosis": (dict, type(None)),
    "checks": list,
    "left_out": list,
}
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError)


@dataclass(frozen=True)
class Report:
    """What was reached, what is proven, and everything behind it.

    Attributes
    ----------
    record : dict
        Plain data; every figure and sentence comes from it alone.

    Examples
    --------
    >>> Report.from_json({"format": "setpoint report 0"})
    Traceback (most recent call last):
        ...
    setpoint.FileError: this is not a report: it lacks "format": "setpoint report 1"
    """

    record: Mapping[str, Any]

    @property
    def verdict(self) -> dict[str, Any]:
        """``status`` (PROVEN, NOT PROVEN, … NO CONSTRAINT), ``headline`` and ``detail``."""
        return dict(self.record["verdict"])

    def __repr__(self) -> str:
        return f"<Report: {self.record['verdict']['status']}, {self.record['goal']!r}>"

    def __str__(self) -> str:
        """A page of plain text."""
        return self._render(text_of)

    def html(self) -> str:
        """One self-contained page: no scripts, nothing loaded from elsewhere."""
        return self._render(page_of)

    def card(self) -> str:
        """A model card: YAML front matter and Markdown."""
        return self._render(card_of)

    def _render(self, how: Any) -> str:
        try:
            return how(self.record)
        except SetpointError:
            raise
        except _DAMAGE as error:
            raise FileError(f"this report is damaged: {error!r}. Make it again") from error

    # --- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return plain(self.record)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Read what :meth:`to_json` wrote; nothing in it is executed."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a report: it lacks "format": "{FORMAT}"')
        for name, kind in _SECTIONS.items():
            if name not in data or not isinstance(data[name], kind):
                raise FileError(f'this report is damaged: "{name}" is not what it should be')
        if data["verdict"].get("status") not in list(Outcome):
            raise FileError(f"a report says one of {', '.join(Outcome)}")
        return cls(plain(data))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``report.html``, ``report.json`` and the card ``README.md`` into a folder."""
        target = Path(folder)
        page = self.html()
        card = self.card()
        make_folder(target)
        write_text(target / "report.html", page)
        write_text(target / "README.md", card)
        write_json(target / "report.json", self.to_json())
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Report:
        """Read a ``report.json``, or the one in a folder."""
        place = Path(path)
        return opened(place / "report.json" if place.is_dir() else place, "a report", cls.from_json)

"""Report of a run, read as a page, as text, as a model card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.files import make_folder, write_json, write_text
from setpoint.reports.render.model_card import card_of
from setpoint.reports.render.page import page_of
from setpoint.reports.render.text import text_of
from setpoint.reports.report_content import FORMAT, ReportContent
from setpoint.rules.certificate import opened


@dataclass(frozen=True, eq=False)
class Report:
    """What was reached, what is proven, and everything behind it.

    Attributes
    ----------
    content : ReportContent
        The sections; every figure and sentence comes from them alone.

    Examples
    --------
    >>> Report.from_json({"format": "setpoint report 0"})
    Traceback (most recent call last):
        ...
    setpoint.FileError: this is not a report: it lacks "format": "setpoint report 1"
    """

    content: ReportContent

    @cached_property
    def record(self) -> dict[str, Any]:
        """The same as plain data, as ``report.json`` has it."""
        return self.content.to_json()

    @property
    def verdict(self) -> dict[str, Any]:
        """``status`` (PROVEN, NOT PROVEN, … NO CONSTRAINT), ``headline`` and ``detail``."""
        return self.content.verdict.to_json()

    def __eq__(self, other: object) -> bool:
        """Whether all that they tell is the same."""
        return isinstance(other, Report) and self.record == other.record

    def __repr__(self) -> str:
        return f"<Report: {self.content.verdict.status}, {self.content.goal!r}>"

    def __str__(self) -> str:
        """A page of plain text."""
        return text_of(self.content)

    def html(self) -> str:
        """One self-contained page: no scripts, nothing loaded from elsewhere."""
        return page_of(self.content)

    def card(self) -> str:
        """A model card: YAML front matter and Markdown."""
        return card_of(self.content)

    # --- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return self.record

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Read what :meth:`to_json` wrote; nothing in it is executed."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a report: it lacks "format": "{FORMAT}"')
        return cls(ReportContent.from_json(data))

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

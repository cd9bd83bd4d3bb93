"""A part of the page: its tables, how they were made, and what they come to in a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.results.figures import error, number
from benchmarks.results.recording import Recording

CHANCE = 0.05  #: with which two that are equal would not be called even


@dataclass(frozen=True)
class Finding:
    """One line of the summary: ours against another, on one figure."""

    question: str
    ours: str
    other: str
    figure: str
    difference: str
    verdict: str

    @classmethod
    def of(
        cls, question: str, ours: str, other: str, figure: str, a: np.ndarray, b: np.ndarray
    ) -> Finding:
        """From paired figures, independent of each other (one a table, or one a draw)."""
        d = a - b
        mean, se = float(d.mean()), error(d)
        far = abs(mean) > se * float(stats.t.ppf(1 - CHANCE / 2, d.size - 1))
        verdict = ("ahead" if mean > 0 else "**behind**") if far else "even"
        if not np.isfinite(se):
            verdict = "not known"
        means = (number(float(x.mean())) for x in (a, b))
        difference = f"{number(mean, signed=True)} ± {number(se)}"
        return cls(
            question, f"{ours} {next(means)}", f"{other} {next(means)}", figure, difference, verdict
        )

    def cells(self) -> tuple[str, ...]:
        """For the summary's table."""
        return (
            self.question,
            self.figure,
            self.ours,
            self.other,
            self.difference,
            self.verdict,
        )


@dataclass(frozen=True)
class Section:
    """A heading and the text below it; findings for the summary."""

    title: str
    text: str
    findings: tuple[Finding, ...] = ()


def how(recording: Recording, *more: str) -> str:
    """The line above a table: command, peer, versions, and what else there is to say."""
    about = recording.about
    versions = ", ".join(
        f"{k} {v}" for k, v in about.get("environment", {}).items() if k != "threads"
    )
    peer = (
        f" {about['peer']} in its own environment (`{about['setup']}`)."
        if about.get("peer")
        else ""
    )
    threads = about.get("environment", {}).get("threads")
    thread = " One thread." if threads == 1 else ""
    sentences = "".join(f" {x}" for x in more)
    known = f" {versions}." if versions else ""
    return f"`{about['command']}`.{sentences}{peer}{thread}{known}\n"


def missing(title: str, command: str, why: str = "") -> Section:
    """A section whose figures have not been recorded."""
    return Section(title, f"Not recorded yet: `{command}`.{f' {why}' if why else ''}\n")

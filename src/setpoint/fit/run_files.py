"""The sealed files of a run folder: their names, and the records that are read without a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.files import MANIFEST, read_json, sealed, verify
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions.comparison import Comparison
from setpoint.reports import Report

CLASSIFIER = "classifier.json"
REGRESSOR = "regressor.json"
RULE = "rule.json"
CERTIFICATE = "certificate.json"
COMPARISON = "comparison.json"
HISTORY = "history.json"
REPORT = "report.json"
WORK = "work"  #: the folder of finished parts, while a fit goes on or after it was stopped


@dataclass(frozen=True)
class SealedRun:
    """A run folder and the files that its manifest names; any other file there is not the run's.

    Attributes
    ----------
    folder : Path
    names : frozenset of str
    """

    folder: Path
    names: frozenset[str]

    @classmethod
    def open(cls, folder: Path) -> SealedRun:
        """A run folder, every file of which has the checksum of the manifest."""
        files = _sealed_files(folder)
        verify(folder, files, "Fit again, or take the folder from where it came")
        return cls(folder, frozenset(files))

    def json(self, name: str) -> Any:
        """The data of a file that every such run has."""
        return read_json(self._path(name))

    def rule(self) -> DecisionRule:
        """The operating point."""
        return DecisionRule.load(self._path(RULE))

    def certificate(self) -> Certificate | None:
        """What was proven of the rule, if anything was tested."""
        return Certificate.load(self.folder / CERTIFICATE) if CERTIFICATE in self.names else None

    def comparison(self) -> Comparison | None:
        """The comparison with the baselines, where there was one."""
        return Comparison.from_json(self.json(COMPARISON)) if COMPARISON in self.names else None

    def report(self) -> Report | None:
        """The report, where it was saved with the run."""
        return Report.load(self.folder / REPORT) if REPORT in self.names else None

    def _path(self, name: str) -> Path:
        if name not in self.names:
            raise FileError(f'"{self.folder}" holds no {name} that its {MANIFEST} names')
        return self.folder / name


def holds_regressor(folder: Path) -> bool:
    """Whether the run of a folder is a regression, by its manifest."""
    return REGRESSOR in _sealed_files(folder)


def _sealed_files(folder: Path) -> dict[str, str]:
    unsealed = "it is no run of Setpoint, or was not written to the end"
    if (folder / WORK).is_dir():
        unsealed = "the fit was not finished; run the same command again to go on"
    files = sealed(folder, unsealed)
    if not files.keys() & {CLASSIFIER, REGRESSOR}:
        raise FileError(f'"{folder / MANIFEST}" is damaged: it lists no estimator')
    return files

"""The models of a run over the chunks of a file: scores, decisions, rows that are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.cli.files.table_writer import sink
from setpoint.cli.inputs.run_scores import Scorer
from setpoint.cli.worded import counted, decision_columns, score_columns
from setpoint.datasets import Schema, column, read_chunks

if TYPE_CHECKING:
    import pandas as pd

ROWS = 100_000  #: of a chunk


@dataclass(frozen=True)
class Wanted:
    """Which columns are written, and which one names the group."""

    ids: tuple[str, ...] = ()
    score: bool = True
    everything: bool = False
    group: str | None = None


@dataclass
class Found:
    """What was decided, counted."""

    rows: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


class Deciding:
    """The models of a run over the chunks of a file."""

    def __init__(self, scorer: Scorer, file: Path, wanted: Wanted) -> None:
        self.scorer, self.file, self.wanted = scorer, file, wanted
        self.rule = scorer.classifier.rule_
        if wanted.group is not None and self.rule.kind != "per-group":
            raise KindError("--group belongs to a rule with one threshold per group.")
        self.group = wanted.group or (self.rule.by if self.rule.kind == "per-group" else None)

    def write(self, out: Path, tick: Callable[[float], None]) -> Found:
        """Decide every chunk and write it; ``tick`` is told the share that is done."""
        found = Found()
        decided = self._at_once() if self.rule.kind == "top-k" else None
        with read_chunks(self.file, ROWS, like=self._like()) as chunks, sink(out) as file:
            for chunk in chunks:
                first = chunks.start
                if decided is None:
                    scores = self.scorer.scores(chunk, first)
                    words = self._decided(scores, chunk, first)
                else:  # the highest scores of the whole file
                    scores = decided[0][first : first + len(chunk)]
                    words = {n: v[first : first + len(chunk)] for n, v in decided[1].items()}
                counted(words, found.counts)
                file.write(self._rows(chunk, first, scores, words))
                found.rows += len(chunk)
                found.ignored = found.ignored or self._passed_over(chunk)
                tick(chunks.progress)
        return found

    def _at_once(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Scores and decisions of all rows, for a rule that compares them with each other."""
        if self.rule.by == "query":
            raise KindError("a rule by query cannot be used here; use rule.json with decide.")
        with read_chunks(self.file, ROWS, like=self._like()) as chunks:
            scores = np.concatenate([self.scorer.scores(c, chunks.start) for c in chunks])
        return scores, decision_columns(self.scorer.classifier, scores)

    def _like(self) -> Schema | None:
        """How a text file is read: columns that are copied stay the texts they are written in."""
        schema = self.scorer.classifier.encoder_.schema
        if schema is None:
            return None
        copied = {c.name for c in schema.columns} if self.wanted.everything else self.wanted.ids
        return replace(
            schema,
            columns=tuple(
                replace(c, kind="category") if c.name in copied and c.kind == "number" else c
                for c in schema.columns
            ),
        )

    def _decided(self, scores: np.ndarray, chunk: pd.DataFrame, first: int) -> dict[str, Any]:
        group = None
        if self.group is not None:
            known = [name for name, _ in self.rule.thresholds]
            group = {self.rule.by or self.group: groups_of(chunk, self.group, known, first)}
        return decision_columns(self.scorer.classifier, scores, group)

    def _rows(
        self, chunk: pd.DataFrame, first: int, scores: np.ndarray, words: dict[str, np.ndarray]
    ) -> pd.DataFrame:
        import pandas as pd

        made: dict[str, Any] = {}
        if self.wanted.everything:
            made = {name: chunk[name].array for name in chunk.columns}
        elif self.wanted.ids:
            made = {name: column(chunk, name, "--id").array for name in self.wanted.ids}
        else:
            made = {"row": np.arange(first + 1, first + 1 + len(chunk))}
        new = score_columns(self.scorer.classifier, scores) if self.wanted.score else {}
        for name, values in {**new, **words}.items():
            if name in made:
                raise DataError(f'"{self.file}" has a column "{name}" already; rename it.')
            made[name] = values
        return pd.DataFrame(made)

    def _passed_over(self, chunk: pd.DataFrame) -> list[str]:
        known = {*self.wanted.ids, self.group}
        return [name for name in self.scorer.strangers(chunk) if name not in known]


def groups_of(chunk: pd.DataFrame, name: str, known: Sequence[Any], first: int) -> np.ndarray:
    """The groups of a rule, whatever type a column of them was read as."""
    cells = column(chunk, name, "group").tolist()
    spelled = {_spelled(value): value for value in known}
    found = [spelled.get(_spelled(cell)) for cell in cells]
    if None in found:
        row = found.index(None)
        hint = did_you_mean(cells[row], known, f"known are {listing(known)}.")
        raise DataError(
            f'the group "{cells[row]}" in column "{name}", data row {first + row + 1}, has no '
            f"threshold of its own: {hint} Fit again with rows of it."
        )
    return np.array(found)


def _spelled(value: Any) -> str:
    whole = isinstance(value, float) and math.isfinite(value) and value % 1 == 0
    return str(int(value)) if whole else str(value)

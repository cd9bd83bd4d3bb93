"""Decisions of a run on new rows: the chunks of a file scored, decided and written."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.cli.display.terminal import Screen
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.files.table_writer import table_writer
from setpoint.cli.jobs.run_scores import (
    DECISION,
    Scorer,
    counted,
    decision_columns,
    score_columns,
)
from setpoint.cli.words import command, count
from setpoint.datasets import Schema, column, read_chunks
from setpoint.datasets.columns.column_names import quoted

if TYPE_CHECKING:
    import pandas as pd

ROWS = 100_000  #: of a chunk
_APART = 3.0  #: standard errors from which on shares are told to differ


@dataclass(frozen=True)
class PredictOptions:
    """Which columns are written, and which one names the group."""

    ids: tuple[str, ...] = ()
    score: bool = True
    everything: bool = False
    group: str | None = None


@dataclass
class DecisionCounts:
    """What was decided, counted."""

    rows: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


class PredictJob:
    """The models of a run over the chunks of a file."""

    def __init__(self, scorer: Scorer, file: Path, wanted: PredictOptions) -> None:
        self.scorer = scorer
        self.file = file
        self.wanted = wanted
        self.rule = scorer.classifier.rule_
        if wanted.group is not None and not self.rule.point.needs_group:
            raise KindError("--group belongs to a rule with one threshold per group.")
        self.group = wanted.group or self.rule.point.group_column

    def write(self, out: Path, tick: Callable[[float], None]) -> DecisionCounts:
        """Decide every chunk and write it; ``tick`` is told the share that is done."""
        tally = DecisionCounts()
        decided = None if self.rule.point.row_by_row else self._at_once()
        with read_chunks(self.file, ROWS, like=self._like()) as chunks, table_writer(out) as file:
            for chunk in chunks:
                first = chunks.start
                if decided is None:
                    scores = self.scorer.scores(chunk, first)
                    words = self._decided(scores, chunk, first)
                else:  # the highest scores of the whole file
                    scores = decided[0][first : first + len(chunk)]
                    words = {n: v[first : first + len(chunk)] for n, v in decided[1].items()}
                counted(words, tally.counts)
                file.write(self._rows(chunk, first, scores, words))
                tally.rows += len(chunk)
                tally.ignored = tally.ignored or self._passed_over(chunk)
                tick(chunks.progress)
        return tally

    def _at_once(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Scores and decisions of all rows, for a rule that compares them with each other."""
        if self.rule.point.needs_query:
            raise KindError("a rule by query cannot be used here; use rule.json with decide.")
        with read_chunks(self.file, ROWS, like=self._like()) as chunks:
            scores = np.concatenate([self.scorer.scores(c, chunks.start) for c in chunks])
        return scores, decision_columns(self.scorer.classifier, scores)

    def _like(self) -> Schema | None:
        """How a text file is read: columns that are copied stay the texts they are written in."""
        schema = self.scorer.classifier.run_.encoder.schema
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

        written: dict[str, Any] = {}
        if self.wanted.everything:
            written = {name: chunk[name].array for name in chunk.columns}
        elif self.wanted.ids:
            written = {name: column(chunk, name, "--id").array for name in self.wanted.ids}
        else:
            written = {"row": np.arange(first + 1, first + 1 + len(chunk))}
        new = score_columns(self.scorer.classifier, scores) if self.wanted.score else {}
        for name, values in {**new, **words}.items():
            if name in written:
                raise DataError(f'"{self.file}" has a column "{name}" already; rename it.')
            written[name] = values
        return pd.DataFrame(written)

    def _passed_over(self, chunk: pd.DataFrame) -> list[str]:
        known = {*self.wanted.ids, self.group}
        return [name for name in self.scorer.strangers(chunk) if name not in known]


def groups_of(chunk: pd.DataFrame, name: str, known: Sequence[Any], first: int) -> np.ndarray:
    """The groups of a rule, whatever type a column of them was read as."""
    cells = column(chunk, name, "group").tolist()
    spelled = {_spelled(value): value for value in known}
    groups = [spelled.get(_spelled(cell)) for cell in cells]
    if None in groups:
        row = groups.index(None)
        hint = did_you_mean(cells[row], known, f"known are {listing(known)}.")
        raise DataError(
            f'the group "{cells[row]}" in column "{name}", data row {first + row + 1}, has no '
            f"threshold of its own: {hint} Fit again with rows of it."
        )
    return np.array(groups)


def _spelled(value: Any) -> str:
    whole = isinstance(value, float) and math.isfinite(value) and value % 1 == 0
    return str(int(value)) if whole else str(value)


@dataclass(frozen=True, eq=False)
class PredictOutput:
    """New rows that were decided, and what is said of them."""

    run: SavedRun
    file: Path
    out: Path
    tally: DecisionCounts

    def drift(self) -> tuple[str, bool] | None:
        """The share decided positive beside that of the rows it was last known of; whether far."""
        run, rows = self.run, self.tally.rows
        known = run.flagged
        if known is None or run.rule.task.kind != "binary" or not run.rule.point.row_by_row:
            return None
        then, of = known
        here = self.tally.counts[DECISION].get(str(run.facts["positive"]), 0) / rows
        spread = max(then * (1 - then), 1 / (of + rows))
        far = abs(here - then) > _APART * math.sqrt(spread * (1 / of + 1 / rows))
        where = "certify rows" if run.report["fresh"] else "out-of-fold rows"
        sentence = f"{_percent(here)} of these rows, {_percent(then)} of the {where}"
        if far:
            sentence += ": these may be unlike the rows of the fit; check some with labels"
        return sentence, far

    def record(self) -> dict[str, Any]:
        """Plain data."""
        run = self.run
        tally = self.tally
        drift = self.drift()
        return {
            "run": str(run.folder),
            "goal": run.goal,
            "data": {"file": str(self.file), "rows": tally.rows, "ignored": tally.ignored},
            "operating_point": run.rule.operating_point(),
            "decided": tally.counts,
            "drift": None if drift is None else {"sentence": drift[0], "far": drift[1]},
            "written": {"decisions": str(self.out)},
        }

    def show(self, screen: Screen) -> None:
        """Print the screen."""
        run = self.run
        tally = self.tally
        drift = self.drift()
        facts = [
            ("Run", f"{run.folder}: {run.goal}; {run.status}"),
            ("Data", f"{self.file}: {count(tally.rows, 'row')}"),
        ]
        if tally.ignored:
            facts.append(("", f"passed over: {quoted(tally.ignored, most=6)}"))
        facts.append(("Operating point", run.rule.operating_point()))
        facts += [
            ("Decided" if name == DECISION else name, self._counted(name, counts))
            for name, counts in tally.counts.items()
        ]
        if drift is not None:
            facts.append(("CAUTION" if drift[1] else "", drift[0]))
        facts.append(("Written", str(self.out)))
        if drift is not None and drift[1]:
            folder = shlex.quote(str(run.folder))
            facts.append(("Check it", f"{command()} evaluate {folder} labelled.csv"))
        screen.line()
        screen.facts(facts)

    def _counted(self, name: str, counts: dict[str, int]) -> str:
        """How many rows were decided as what."""
        rows, facts = self.tally.rows, self.run.facts
        undecided = rows - sum(counts.values())
        rest = f"; {undecided:,} left empty, undecided" if undecided else ""
        positive = facts["positive"]
        if name == DECISION and positive is not None:
            many = counts.get(str(positive), 0)
            return f"{facts['target']} = {positive}: {many:,} of {count(rows, 'row')}{rest}"
        if name != DECISION:
            return f"{counts.get('1', 0):,} of {count(rows, 'row')}"
        return ", ".join(f"{word} {many:,}" for word, many in sorted(counts.items())) + rest


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"

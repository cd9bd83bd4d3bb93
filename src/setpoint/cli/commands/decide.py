"""``setpoint decide``: the decisions of a rule on new rows, beside the columns they came with."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setpoint._core.errors import DataError
from setpoint._core.files import write_bytes
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.files.output_paths import refuse_existing
from setpoint.cli.files.rule_files import load_rule
from setpoint.cli.files.table_writer import refuse_unwritten
from setpoint.cli.inputs.scored_table import (
    SCORE,
    group_values,
    score_columns,
    score_matrix,
    usual_column,
)
from setpoint.cli.inputs.shared_options import ENDINGS, Debug, RuleFile, Score, Scores, scores_of
from setpoint.cli.words import count
from setpoint.datasets import numbers, read_table
from setpoint.datasets.read_table import read_as_text
from setpoint.decisions import DecisionRule

if TYPE_CHECKING:
    import pandas as pd

HELP = "Apply a rule to new rows: all their columns, and one more with what is decided."
EPILOG = """
Examples

  setpoint decide rule.json new.csv --score p --out decided.csv

  setpoint decide rule.json new.parquet --score p --group region \\
    --out decided.parquet

  setpoint decide rule.json new.csv --scores cat,dog,owl --out decided.csv

The column is named decided: 0 or 1, or the class of a multiclass rule. A
multilabel rule gives one column per label: decided_LABEL. Where a rule that
may abstain decides nothing the cell is empty (null in .parquet).

Exit codes

  0  done
  1  an unexpected error
  2  a mistake in the options or a file
"""


def decide(
    rule_file: RuleFile,
    file: Annotated[
        Path, typer.Argument(metavar="NEW", help=f"Rows to decide, with scores: {ENDINGS}.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the rows go: .csv or .parquet.")],
    score: Score = None,
    scores: Scores = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of the group of a per-group rule. Default: as tuned."
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the query of a top-k rule.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Load, read, decide, write; see :meth:`setpoint.DecisionRule.decide`."""
    refuse_unwritten(out)
    refuse_existing([out], force, rows=[file], read=[rule_file])
    rule = load_rule(rule_file)
    table = read_table(file)
    decided = _decided(rule, table, scores_of(score, scores), group, query)
    for name in decided:
        if name in table.columns:
            raise DataError(f'"{file}" has a column "{name}" already; rename it.')
    as_text = out.suffix.lower() == ".csv"
    # What came as text goes out as the same text: 007 stays 007.
    kept = read_as_text(file, table) if as_text else table
    _write(out, kept.assign(**decided), as_text)
    counts = {name: _counts(values) for name, values in decided.items()}
    undecided = len(table) - sum(counts["decided"].values()) if rule.point.may_abstain else 0
    if as_json:
        print_json(
            {
                "rule": str(rule_file),
                "data": {"file": str(file), "rows": len(table)},
                "operating_point": rule.operating_point(),
                "decided": counts,
                **({"undecided": undecided} if rule.point.may_abstain else {}),
                "written": {"rows": str(out)},
            }
        )
    else:
        _show(Screen.open(), rule, file, out, counts, len(table), undecided)


def _decided(
    rule: DecisionRule,
    table: pd.DataFrame,
    given: tuple[str, ...],
    group: str | None,
    query: str | None,
) -> dict[str, np.ndarray]:
    """The new columns; nothing decided is a missing value."""
    names = score_columns(rule.task, given) or usual_column(table, SCORE, "score")
    matrix = rule.task.kind in ("multiclass", "multilabel")
    scores = score_matrix(table, names) if matrix else numbers(table, names[0], "score")
    column = group or rule.point.group_column
    more: dict[str, Any] = {}
    if column is not None:
        more["group"] = {rule.by or column: group_values(table, column, "group")}
    if query is not None:
        more["query"] = group_values(table, query, "query")
    found = np.asarray(rule.decide(scores, **more))
    if rule.task.kind == "multiclass":
        return {"decided": found}
    if rule.task.kind == "multilabel":
        labels = rule.task.classes or ()
        return {f"decided_{c}": found[:, j].astype(np.int8) for j, c in enumerate(labels)}
    if rule.point.may_abstain:
        return {"decided": np.array([None, 0, 1], dtype=object)[found + 1]}
    return {"decided": found.astype(np.int8)}


def _counts(values: np.ndarray) -> dict[str, int]:
    found = Counter(value for value in values.tolist() if value is not None)
    return {str(v): found[v] for v in sorted(found, key=lambda v: (isinstance(v, str), v))}


def _write(out: Path, table: pd.DataFrame, as_text: bool) -> None:
    with BytesIO() as file:
        if as_text:
            table.to_csv(file, index=False, encoding="utf-8", lineterminator="\n")
        else:
            table.to_parquet(file, index=False)
        write_bytes(out, file.getvalue())


def _show(
    screen: Screen,
    rule: DecisionRule,
    file: Path,
    out: Path,
    counts: dict[str, dict[str, int]],
    rows: int,
    undecided: int,
) -> None:
    def said(of: dict[str, int]) -> str:
        named = ", ".join(f"{name} {many:,}" for name, many in of.items())
        if rule.point.may_abstain:
            whole = f"{rows - undecided:,} of {count(rows, 'row')}"
            return f"{whole}: {named or 'none'}; {undecided:,} left empty, undecided"
        if rule.task.kind == "multiclass":
            return named
        return f"{of.get('1', 0):,} of {count(rows, 'row')}"

    several = len(counts) > 1
    facts = [(name if several else "Decided", said(of)) for name, of in counts.items()]
    screen.line()
    screen.facts(
        [
            ("Data", f"{count(rows, 'row')}; {file}"),
            ("Operating point", rule.operating_point()),
            *facts,
            ("Written", f"{out}: all columns and {', '.join(counts)}"),
        ]
    )

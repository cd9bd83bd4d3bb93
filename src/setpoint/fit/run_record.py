"""What a fit leaves behind for its report: rows with scores, parts, checks."""

from __future__ import annotations

import io
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from setpoint._core.errors import SetpointError
from setpoint.datasets import Parts
from setpoint.decisions import diagnose, plan
from setpoint.fit.members import ScoresGiven
from setpoint.fit.pipeline import Done
from setpoint.fit.plan import counts_of
from setpoint.fit.training_data import Encoder, Job
from setpoint.goals import lower
from setpoint.reports import (
    Report,
    RunFacts,
    ScoredRows,
    drift,
    duplicates,
    few_positives,
    leakage,
    make_report,
    unstable_threshold,
)

PACKAGES = ("setpoint", "numpy", "scipy", "scikit-learn", "torch", "lightgbm", "pandas")


@dataclass(frozen=True, eq=False)
class Story:
    """Rows as the report needs them, and what was checked of the table.

    Attributes
    ----------
    scored : tuple of Scored
        Certify rows, where there are any, then out-of-fold rows.
    parts : Parts
    rows : int
    columns : dict
        Counts of columns by kind.
    checks : tuple of Check
    """

    scored: tuple[Any, ...]
    parts: Parts
    rows: int
    columns: dict[str, int]
    checks: tuple[Any, ...]
    counts: dict[str, tuple[int, int | None]]

    @classmethod
    def of(cls, done: Done, job: Job) -> Story:
        """From a fit that came to an end."""
        found, parts = done.concluded, done.parts
        scored = [_scored("out-of-fold", job, found.held, found.held_scores, found.fold)]
        if found.certify_scores is not None:
            scored.insert(0, _scored("certify", job, parts.certify, found.certify_scores))
        schema = done.encoder.schema
        columns = {} if schema is None else schema.counts()
        counts, X, first = counts_of(parts, job.target), job.rows.X, done.first
        of = {"train": first.train, **({"certify": first.certify} if len(first.certify) else {})}
        checks = [few_positives(counts)]
        if len(np.shape(X)) == 2 and not isinstance(done.recipe.members[0], ScoresGiven):
            checks = [leakage(_used(X, done.encoder), job.target), duplicates(X, of), *checks]
            checks.append(drift(X, first.train, first.certify))
        return cls(tuple(scored), parts, len(job.target), columns, tuple(checks), counts)

    def splits(self) -> str:
        """The part and fold of each row, as CSV."""
        part = np.full(self.rows, "train", dtype="<U7")
        fold = self.parts.fold_of(self.rows)
        if len(self.parts.folds) == 1 and not self.parts.shared:
            part[self.parts.held] = "tune"
        part[self.parts.certify] = "certify"
        text = io.StringIO()
        text.write("row,part,fold\n")
        text.writelines(
            f"{i},{p},{f if f >= 0 else ''}\n"
            for i, (p, f) in enumerate(zip(part, fold.tolist(), strict=True))
        )
        return text.getvalue()


def _used(X: Any, encoder: Encoder) -> Any:
    """The columns that the schema uses: what it ignores cannot leak."""
    if encoder.schema is None or not hasattr(X, "iloc"):
        return X
    return X.iloc[:, [j for j, c in enumerate(encoder.schema.columns) if c.kind != "ignored"]]


def _scored(
    name: str, job: Job, rows: np.ndarray, scores: np.ndarray, fold: np.ndarray | None = None
) -> ScoredRows:
    groups = {key: values[rows] for key, values in job.groups.items()} or None
    y = job.labels.named(job.target[rows])
    return ScoredRows(name, y, scores, groups, job.weights(rows), fold)


def versions() -> dict[str, str]:
    """Of Python and the packages that a run depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def report_of(classifier: Any) -> Report:
    """The report of a fitted classifier."""
    story: Story | None = classifier.story_
    if story is None:
        raise SetpointError("this classifier was saved without its report; fit it again for one")
    goal, rule = lower(classifier.rule_.goal), classifier.rule_
    oof = story.scored[-1]
    given = {"group": oof.group, "task": rule.task}
    told = planned = None
    if goal.constraints and rule.kind != "top-k":
        fresh = len(story.scored[0].y) if len(story.scored) > 1 else None
        confidence = float(classifier.confidence)
        try:
            told = diagnose(
                goal,
                oof.y,
                oof.scores,
                **given,
                sample_weight=oof.weight,
                kind=rule.kind,
                confidence=confidence,
                fresh=fresh,
            )
            planned = plan(goal, oof.y, oof.scores, **given, kind=rule.kind, confidence=confidence)
        except SetpointError:
            pass  # a kind of goal or rule that has neither; the report does without
    facts = RunFacts(
        source=getattr(classifier, "source_", f"a table of {story.rows:,} rows"),
        target=getattr(classifier, "target_", "y"),
        positive=None if rule.task.kind != "binary" else str(classifier._labels.pair[1]),
        rows=story.rows,
        columns=story.columns,
        fingerprint=classifier.fingerprint_,
        parts=story.counts,
        plan=tuple(classifier.plan_.lines()),
        notes=tuple(classifier.notes_),
        settings=_settings(classifier),
        versions=classifier.versions_,
        usage=getattr(classifier, "usage_", USAGE),
        seconds=classifier.seconds_,
        finished=classifier.finished_,
    )
    checks = (*story.checks, unstable_threshold(oof, rule))
    return make_report(
        goal=goal,
        rule=rule,
        scored=story.scored,
        facts=facts,
        certificate=classifier.certificate_,
        comparison=classifier.comparison_,
        diagnosis=told,
        plan=planned,
        checks=checks,
    )


USAGE = (
    "import setpoint as sp",
    'clf = sp.load("run/")',
    "decisions = clf.predict(X_new)",
)


def _settings(classifier: Any) -> dict[str, Any]:
    plain = classifier.get_params(deep=False)
    return {
        k: v if isinstance(v, bool | int | float | str | None) else str(v)
        for k, v in plain.items()
        if k not in ("listener",)
    }

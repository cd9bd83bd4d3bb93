"""The results page is what the recorded figures make, and its figures are what they are called."""

import json
import math

import numpy as np
import pytest
from benchmarks.peers import rows as peers_rows
from benchmarks.peers.thresholds import floored_recall
from benchmarks.portfolio.report import report
from benchmarks.results import figures
from benchmarks.results.page import CHAPTERS, PAGE, assemble
from benchmarks.results.portfolio import KEPT, fold, unfold
from benchmarks.results.recording import FOLDER, read, record
from benchmarks.results.section import Finding
from benchmarks.results.taking import take
from scipy import stats
from sklearn import metrics


@pytest.fixture(scope="module")
def page():
    return assemble()


def test_the_page_is_what_the_recorded_files_make(page):
    assert PAGE.read_text(encoding="utf-8") == page, "run python -m benchmarks.results"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda p: p.stem)
def test_every_recording_is_on_the_page_with_its_command(path, page):
    recording = read(path.stem)
    assert recording is not None
    assert recording.lines
    assert f"`{recording.about['command']}`" in page
    assert recording.about["environment"]["threads"] == 1
    assert path.stat().st_size < 500_000


def test_a_changed_figure_changes_the_page(tmp_path, page):
    for path in FOLDER.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert assemble(tmp_path) == page
    path = tmp_path / "peers-proving.json"
    lines = [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]
    for line in lines[1:]:
        line["recall"] = 0.123
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    assert ".123 ± .000" in assemble(tmp_path)


def test_what_is_not_recorded_is_said_with_its_command(tmp_path):
    text = assemble(tmp_path)
    entries = [entry for chapter in CHAPTERS.values() for entry in chapter.values()]
    assert text.count("Not recorded yet") == len(entries)
    for _, title, command in entries:
        assert f"### {title}\n\nNot recorded yet: `{command}`." in text


def test_a_recording_comes_back(tmp_path):
    lines = [{"table": "a", "seed": 0, "x": np.float32(1 / 3), "n": np.int64(3), "no": None}]
    record("this", "python -m that", lines, folder=tmp_path, seeds=1)
    found = read("this", tmp_path)
    assert found is not None
    assert found.lines == ({"table": "a", "seed": 0, "x": 0.333333, "n": 3, "no": None},)
    assert found.about["command"] == "python -m that"
    assert read("that", tmp_path) is None


@pytest.mark.parametrize(
    ("x", "signed", "text"),
    [
        (0.5, False, ".500"),
        (-0.0151, False, "−.015"),
        (1.25, True, "+1.250"),
        (-1e-9, True, ".000"),
        (1.0, False, "1.000"),
        (math.nan, False, "–"),
    ],
)
def test_numbers_in_words(x, signed, text):
    assert figures.number(x, signed=signed) == text


def test_standard_error_and_pairing():
    x = np.random.default_rng(0).normal(size=20)
    assert figures.error(x) == pytest.approx(stats.sem(x))
    lines = [
        {"table": t, "seed": s, "way": w, "x": 10 * s + (t == "b")}
        for s in (1, 0)
        for t in "ba"
        for w in "vw"
    ]
    assert figures.values(lines, "x", way="v").tolist() == [0, 10, 1, 11]
    assert sorted(figures.over_tables(lines, "x", way="w").tolist()) == [5, 6]


def test_verdict_is_a_paired_t_test():
    random = np.random.default_rng(1)
    words = set()
    for shift in np.linspace(-1, 1, 41):
        a, b = random.normal(size=(2, 6)) * 0.3
        finding = Finding.of("?", "ours", "other", "x", a + shift, b)
        p = stats.ttest_rel(a + shift, b).pvalue
        expected = "even" if p > 0.05 else "ahead" if (a + shift - b).mean() > 0 else "**behind**"
        assert finding.verdict == expected
        words.add(finding.verdict)
    assert words == {"even", "ahead", "**behind**"}


@pytest.mark.parametrize("seed", range(5))
def test_judged_as_scikit_learn_does(seed):
    random = np.random.default_rng(seed)
    y, decided = random.random(200) < 0.2, random.random(200) < 0.3
    y[:3] = decided[:3] = True
    found = peers_rows.judged(y.astype(int), decided)
    precision, recall = metrics.precision_score(y, decided), metrics.recall_score(y, decided)
    assert found["precision"] == pytest.approx(precision)
    assert found["recall"] == pytest.approx(recall)
    assert found["f1"] == pytest.approx(metrics.f1_score(y, decided))
    assert found["merit"] == pytest.approx(max(-1, recall - 5 * max(0, 0.8 - precision)))
    assert found["broken"] == (precision < 0.8)
    assert floored_recall(y, decided) == pytest.approx(precision - 0.8)
    assert floored_recall(y, y) == 1


def test_nothing_decided_breaks_nothing():
    found = peers_rows.judged(np.array([0, 1]), np.array([False, False]))
    assert found == {"recall": 0, "precision": None, "f1": 0, "broken": False, "merit": 0}


def portfolio_records():
    random = np.random.default_rng(0)
    return [
        {"table": table, "split": split, "strategy": strategy, "goal": goal, "n": 800}
        | {"n test": 200, "positives": 20, "seconds": 1.0, "merit": round(random.random(), 4)}
        | {"broken": bool(random.random() < 0.3), "beyond": False}
        | ({"proven": bool(random.random() < 0.5)} if strategy in ("ours", "MAPIE") else {})
        for table in ("wilt", "phoneme")
        for split in range(3)
        for strategy in ("LightGBM cv", "LR cv", "MAPIE", "ours")
        for goal in ("G1", "G2", "G3", "G4")
    ]


def test_portfolio_records_fold_and_come_back(tmp_path):
    records = portfolio_records()
    key = lambda r: (r["table"], r["split"], r["strategy"], r["goal"])  # noqa: E731
    assert sorted(unfold(fold(records)), key=key) == sorted(records, key=key)
    assert {k for r in records for k in r} <= set(KEPT)
    halves = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, part in zip(halves, (records[:40], records[30:]), strict=True):
        path.write_text("".join(json.dumps(r) + "\n" for r in part), encoding="utf-8")
    take(halves, tmp_path)
    text = assemble(tmp_path)
    assert report(records) in text
    assert "GoalClassifier(goal)" in text

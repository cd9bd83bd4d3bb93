"""Bundled sets against what was published of them."""

import csv
import gzip
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets as theirs

from setpoint._core.errors import DataError, FileError, SetpointError
from setpoint.datasets import bundled, load, names, read_table

DATA = Path(bundled.__file__).parent / "data"
FEATURES = ["GLCM_pan", "Mean_Green", "Mean_Red", "Mean_NIR", "SD_pan"]

# name, rows, features, task, positive, counts per class (None: regression), from the sources' pages
PUBLISHED = [
    ("wilt", 4839, 5, "binary", 1, [4578, 261]),
    ("breast-cancer", 569, 30, "binary", 1, [357, 212]),
    ("digits", 1797, 64, "multiclass", None, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    ("wine", 178, 13, "multiclass", None, [59, 71, 48]),
    ("iris", 150, 4, "multiclass", None, [50, 50, 50]),
    ("diabetes", 442, 10, "regression", None, None),
]


def test_every_name_has_its_published_figures():
    assert names() == tuple(row[0] for row in PUBLISHED)


@pytest.mark.parametrize(("name", "rows", "features", "task", "positive", "counts"), PUBLISHED)
def test_published_figures(name, rows, features, task, positive, counts):
    data = load(name)
    assert data.name == name
    assert data.X.shape == (rows, features)
    assert data.y.shape == (rows,)
    assert data.X.index.tolist() == list(range(rows))
    assert np.isfinite(data.X.to_numpy()).all()
    assert (data.task, data.positive) == (task, positive)
    if counts is None:
        assert data.y.dtype.kind == "f"
    else:
        assert data.y.dtype.kind == "i"
        assert np.bincount(data.y).tolist() == counts


@pytest.mark.parametrize("name", names())
def test_description_is_one_paragraph_with_source_and_licence(name):
    text = load(name).description
    assert "\n" not in text
    assert "CC BY 4.0" in text or "no licence" in text
    assert "UCI Machine Learning Repository" in text or "Annals of Statistics" in text


def test_wilt_rows_are_the_published_ones():
    wilt = load("wilt")
    assert wilt.X.columns.tolist() == FEATURES
    # First rows of the published training file, as its text stands there.
    published = [
        [120.3627737, 205.5, 119.3953488, 416.5813953, 20.67631835],
        [124.7395833, 202.8, 115.3333333, 354.3333333, 16.70715083],
    ]
    np.testing.assert_array_equal(wilt.X.to_numpy(np.float32)[:2], np.float32(published))
    assert wilt.y[:74].all()  # the training file begins with its 74 diseased trees
    assert not wilt.y[74:4339].any()


def test_wilt_split_has_the_published_shift():
    wilt = load("wilt")
    assert wilt.split.dtype.kind == "U"
    train, test = wilt.split == "train", wilt.split == "test"
    assert (train.sum(), test.sum()) == (4339, 500)
    assert (wilt.y[train].sum(), wilt.y[test].sum()) == (74, 187)
    assert round(100 * wilt.y[train].mean(), 1) == 1.7
    assert round(100 * wilt.y[test].mean(), 1) == 37.4


def test_wilt_text_is_the_shortest_that_returns_the_float32():
    text = gzip.decompress((DATA / "wilt.csv.gz").read_bytes()).decode()
    for row in csv.DictReader(io.StringIO(text)):
        for name in FEATURES:
            value = np.float32(row[name])
            assert np.format_float_positional(value, unique=True, trim="-") == row[name]


def test_wilt_is_the_same_through_read_table():
    wilt, table = load("wilt"), read_table(DATA / "wilt.csv.gz")
    assert table.columns.tolist() == [*FEATURES, "target", "split"]
    assert wilt.X.equals(table[FEATURES])
    assert wilt.y.tolist() == table["target"].tolist()
    assert wilt.split.tolist() == table["split"].tolist()


def test_wilt_file_carries_no_time():
    content = (DATA / "wilt.csv.gz").read_bytes()
    assert content[4:8] == bytes(4)
    assert hashlib.sha256(content).hexdigest() == bundled._WILT_SHA256


def test_readme_states_source_licence_and_shift():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for fact in ("10.24432/C5KS4M", "CC BY 4.0", "Brian Johnson", "4839", "261", "shifted prior"):
        assert fact in text
    for share in ("1.7 %", "37.4 %"):
        assert share in text
    assert all(f"`{name}`" in text for name in [*FEATURES, "target", "split"])


def test_malignant_is_positive_though_scikit_learn_codes_it_0():
    bunch = theirs.load_breast_cancer()
    assert bunch.target_names[0] == "malignant"
    data = load("breast-cancer")
    assert data.y.tolist() == (bunch.target == 0).astype(int).tolist()
    assert data.X.columns.tolist() == bunch.feature_names.tolist()


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("digits", theirs.load_digits),
        ("wine", theirs.load_wine),
        ("iris", theirs.load_iris),
        ("diabetes", theirs.load_diabetes),
    ],
)
def test_sets_of_scikit_learn_are_unchanged(name, loader):
    bunch, data = loader(), load(name)
    np.testing.assert_array_equal(data.X.to_numpy(), bunch.data)
    np.testing.assert_array_equal(data.y, bunch.target)
    assert data.split is None


@pytest.mark.parametrize("name", names())
def test_arrays_are_fresh_and_free_to_change(name):
    first = load(name)
    first.y[0] += 1
    first.X.iloc[0, 0] += 1
    second = load(name)
    assert first.y[0] != second.y[0]
    assert first.X.iloc[0, 0] != second.X.iloc[0, 0]


def test_record_is_frozen_and_prints_short():
    data = load("iris")
    with pytest.raises(AttributeError):
        data.name = "other"
    assert repr(data) == "Dataset(name='iris', task='multiclass', positive=None)"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("wlit", 'there is no bundled set "wlit". Did you mean "wilt"? There are wilt, '),
        ("Breast Cancer", 'Did you mean "breast-cancer"?'),
        ("mnist", 'there is no bundled set "mnist". There are wilt, breast-cancer, digits, wine, '),
    ],
)
def test_unknown_name(name, sentence):
    with pytest.raises(DataError) as caught:
        load(name)
    assert sentence in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_changed_file_is_refused(tmp_path, monkeypatch):
    content = bytearray((DATA / "wilt.csv.gz").read_bytes())
    content[-1] ^= 1
    (tmp_path / "wilt.csv.gz").write_bytes(content)
    monkeypatch.setattr(bundled, "_FOLDER", tmp_path)
    with pytest.raises(
        FileError, match=r'"wilt\.csv\.gz" is not the published one: its sha256'
    ) as e:
        load("wilt")
    assert f", not {bundled._WILT_SHA256[:12]}. Install setpoint again." in str(e.value)
    assert isinstance(e.value, ValueError)
    assert isinstance(e.value, SetpointError)


def test_missing_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "_FOLDER", tmp_path)
    with pytest.raises(FileError, match=r'"wilt\.csv\.gz" cannot be read \(No such file'):
        load("wilt")

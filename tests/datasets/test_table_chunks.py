"""Chunks: put together they are the whole table, in type and cell, and fail in the same words."""

import datetime
import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import setpoint as sp
from setpoint.datasets import Schema, count_rows, read_chunks, read_table

CELL = st.sampled_from(
    ["", "1", "2", "-7", "2.5", "1e3", " 3", "007", "True", "FALSE", "NA", "nan", "a", "b c", "x"]
)
COLUMN = st.one_of(  # columns that are mostly of one kind, so that chunks look narrower
    st.lists(st.sampled_from(["1", "2", "", "2.5"]), min_size=9, max_size=9),
    st.lists(st.sampled_from(["True", "False", "true", ""]), min_size=9, max_size=9),
    st.lists(st.sampled_from(["1", "True", "a", "", "NA"]), min_size=9, max_size=9),
    st.lists(CELL, min_size=9, max_size=9),
)


def same(parts, whole):
    """Each chunk is its rows of the whole: the same types, cells, and index."""
    at = 0
    for chunk in parts:
        pd.testing.assert_frame_equal(chunk, whole.iloc[at : at + len(chunk)])
        at += len(chunk)
    assert at == len(whole)


def sizes(parts):
    return [len(chunk) for chunk in parts]


@settings(max_examples=40, deadline=None)
@given(st.lists(COLUMN, min_size=1, max_size=4), st.integers(1, 10), st.booleans())
def test_a_text_file(tmp_path_factory, columns, rows, zipped):
    file = tmp_path_factory.mktemp("t") / ("t.csv.gz" if zipped else "t.csv")
    lines = [",".join([*(f"c{j}" for j in range(len(columns))), "last"])]
    lines += [",".join([*cells, str(i)]) for i, cells in enumerate(zip(*columns, strict=True))]
    text = "\n".join(lines).encode()
    file.write_bytes(gzip.compress(text) if zipped else text)
    whole = read_table(file)
    parts = list(read_chunks(file, rows))
    same(parts, whole)
    assert all(len(chunk) == rows for chunk in parts[:-1])
    chosen = read_chunks(file, rows, ["last", "c0"])
    same(chosen, whole[["last", "c0"]])
    assert chosen.progress == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["1", "1,000", "2.5", "", "?"]), min_size=8, max_size=8),
       st.lists(st.sampled_from(["a", "7", "007", "1.0", ""]), min_size=8, max_size=8),
       st.integers(1, 9))  # fmt: skip
def test_chunks_for_a_schema(tmp_path_factory, numbers, words, rows):
    folder = tmp_path_factory.mktemp("t")
    days = pd.date_range("2024-02-25", periods=8).strftime("%Y-%m-%d")
    table = pd.DataFrame({"n": numbers, "w": words, "d": days, "t": [True, False] * 4, "i": 1})
    (folder / "seen.csv").write_text(
        "n,w,d,t,i\n"
        + '"1,000",a,2024-02-01,True,1\n?,b,2024-02-03,False,1\n'
        + "2.5,a,,True,1\n" * 20
    )
    schema = Schema.fit(read_table(folder / "seen.csv"))
    assert [c.kind for c in schema.columns] == ["number", "category", "date", "truth", "ignored"]
    table.to_csv(folder / "new.csv", index=False)
    chunks = read_chunks(folder / "new.csv", rows, like=schema)
    made = pd.concat([schema.apply(chunk, chunks.start) for chunk in chunks])
    wanted = schema.apply(table.replace("", None))  # the cells as they are written
    pd.testing.assert_frame_equal(made, wanted, check_dtype=False)


def test_an_error_in_a_late_chunk_names_the_row_of_the_file(tmp_path):
    seen = pd.DataFrame({"n": np.random.default_rng(0).normal(size=20)})
    schema = Schema.fit(seen)
    file = tmp_path / "new.csv"
    file.write_text("n\n" + "1.5\n" * 25 + "many\n" + "2.5\n" * 3)
    chunks = read_chunks(file, 10, like=schema)
    schema.apply(next(chunks), chunks.start)
    schema.apply(next(chunks), chunks.start)
    with pytest.raises(sp.DataError, match='"many" in data row 26'):
        schema.apply(next(chunks), chunks.start)


def mixed(n, gap):
    rng = np.random.default_rng(0)
    whole = [
        None if gap and i in (n // 2, n - 1) else int(v)
        for i, v in enumerate(rng.integers(0, 9, n))
    ]
    return pa.table(
        {
            "whole": pa.array(whole, pa.int64()),
            "small": pa.array(whole, pa.int8()),
            "unsigned": pa.array(whole, pa.uint16()),
            "truth": pa.array([None if v is None else v > 4 for v in whole]),
            "real": pa.array([None if v is None else v / 4 for v in whole]),
            "float32": pa.array(rng.normal(size=n).astype("float32")),
            "word": pa.array([None if v is None else f"w{v}" for v in whole]),
            "nothing": pa.nulls(n),
            "none": pa.nulls(n, pa.string()),
            "when": pa.array(
                [None if v is None else datetime.datetime(2024, 1, v + 1) for v in whole]
            ),
            "day": pa.array([None if v is None else datetime.date(2024, 1, v + 1) for v in whole]),
        }
    )


WRITERS = {
    "t.parquet": lambda table, file: parquet.write_table(table, file, row_group_size=4),
    "bare.parquet": lambda table, file: parquet.write_table(
        table, file, row_group_size=7, write_statistics=False
    ),
    "t.feather": lambda table, file: feather.write_feather(table, str(file), chunksize=3),
    "plain.feather": lambda table, file: feather.write_feather(
        table, str(file), compression="uncompressed"
    ),
    "stream.arrow": lambda table, file: _stream(table, file),
}


def _stream(table, file):
    with pa.ipc.new_stream(str(file), table.schema) as sink:
        sink.write_table(table, max_chunksize=5)


@pytest.mark.parametrize("rows", [1, 3, 4, 10, 23, 100])
@pytest.mark.parametrize("gap", [True, False])
@pytest.mark.parametrize("name", WRITERS)
def test_binary_files(tmp_path, name, gap, rows):
    file = tmp_path / name
    WRITERS[name](mixed(23, gap), file)
    whole = read_table(file)
    parts = list(read_chunks(file, rows))
    same(parts, whole)
    assert sizes(parts) == [min(rows, 23 - i) for i in range(0, 23, rows)]
    same(read_chunks(file, rows, ["word", "whole"]), whole[["word", "whole"]])
    assert count_rows(file) == 23


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_what_pandas_wrote(tmp_path, ending):
    frame = pd.DataFrame(
        {"n": pd.array([1, None, 3, 4, 5], dtype="Int64"), "b": pd.array([True] * 5, "boolean"),
         "s": ["a", None, "c", "d", "e"]}
    )  # fmt: skip
    file = tmp_path / f"t.{ending}"
    indexes = [None, pd.RangeIndex(10, 15, name="row"), pd.Index(list("vwxyz"), name="key")]
    for index in indexes if ending == "parquet" else [None]:  # feather keeps none
        given = frame if index is None else frame.set_axis(index)
        getattr(given, f"to_{ending}")(file)
        same(read_chunks(file, 2), read_table(file))
        if index is not None:
            same(read_chunks(file, 2, [index.name, "s"]), read_table(file, [index.name, "s"]))


def test_categories_are_written_out(tmp_path):
    frame = pd.DataFrame({"c": pd.Categorical(["b", None, "a", "b"], categories=["a", "b", "z"])})
    for ending in ("parquet", "feather"):
        file = tmp_path / f"t.{ending}"
        getattr(frame, f"to_{ending}")(file)
        parts = list(read_chunks(file, 3))
        assert [chunk["c"].dtype == parts[0]["c"].dtype for chunk in parts] == [True, True]
        cells = pd.concat(parts)["c"].astype(object)
        assert cells.where(cells.notna(), None).tolist() == ["b", None, "a", "b"]


GOOD = "a,b\n" + "1,2\n" * 12


@pytest.mark.parametrize(
    "content",
    [
        GOOD + "1,2,3\n",
        "a,b\n1,2,3\n" + "1,2\n" * 8,
        GOOD + "1,2,\n",
        GOOD + '"1,2\n',
        GOOD.encode() + "1,é\n".encode("latin-1"),
        GOOD.encode("utf-16"),
        "a,b\n",
        "",
        "\n\n",
        "a,a\n1,2\n",
        "a;b\n1;2\n",
        b"PAR1xxxx",
        b"a,b\n1,\0\n",
        "a,b\n1\n" + "1,2\n" * 9,
        "\ufeffa,b\n1,2\n\n\n3,4\n5,6\n",
        ",b\n1,2\n3,4\n5,6\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_the_same_words_for_a_bad_file(tmp_path, content, ending):
    file = tmp_path / f"t.{ending}"
    data = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    agree(file)


@pytest.mark.parametrize(
    "name", ["t.csv.gz", "t.parquet", "t.feather", "t.arrow", "t.xls", "no.csv"]
)
@pytest.mark.parametrize("content", [b"PAR1", b"ARROW1", b"xxxxxxxxxxxx", b"\x1f\x8b\x08\x00", b""])
def test_the_same_words_for_another_file(tmp_path, name, content):
    if name != "no.csv":
        (tmp_path / name).write_bytes(content)
    agree(tmp_path / name)
    agree(tmp_path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv.gz", "stream.arrow"])
def test_the_same_words_for_a_file_cut_short(tmp_path, name):
    file = tmp_path / name
    if name in WRITERS:
        WRITERS[name](mixed(2000, False), file)
    else:
        file.write_bytes(
            gzip.compress(b"a,b\n" + np.random.default_rng(0).bytes(9000).hex().encode())
        )
    whole = file.read_bytes()
    for share in (0.3, 0.9):
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(sp.FileError):
            read_table(file)
        with pytest.raises(sp.FileError, match=r"cut short|cannot be"):
            list(read_chunks(file, 7))


def agree(file):
    """The file is refused in the words of ``read_table``, or read as it reads it."""
    try:
        whole = read_table(file)
    except sp.FileError as error:
        words = str(error)
    else:
        same(read_chunks(file, 5), whole)
        return
    with pytest.raises(sp.FileError) as found:
        list(read_chunks(file, 5))
    assert str(found.value) == words


def test_a_ragged_row_is_found_before_the_first_chunk_or_at_its_own(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(GOOD + "1,2,3\n")
    with pytest.raises(sp.FileError, match=r'line 14 of "t.csv" has 3 fields, the header 2'):
        next(read_chunks(file, 5))
    like = Schema.fit(np.eye(2))
    chunks = read_chunks(file, 5, like=like)
    assert len(next(chunks)) == 5
    with pytest.raises(sp.FileError, match="line 14"):
        list(chunks)


def test_an_empty_parquet(tmp_path):
    pd.DataFrame({"a": [1]}).head(0).to_parquet(tmp_path / "t.parquet")
    agree(tmp_path / "t.parquet")
    assert count_rows(tmp_path / "t.parquet") == 0


def test_bad_arguments(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(GOOD)
    pd.DataFrame({"aa": [1]}).to_parquet(tmp_path / "t.parquet")
    for rows in (0, 2.5, True, "all"):
        with pytest.raises(sp.KindError, match="rows="):
            read_chunks(file, rows)
    with pytest.raises(sp.KindError, match="columns is the text"):
        read_chunks(file, columns="a")
    with pytest.raises(sp.DataError, match="twice"):
        read_chunks(file, columns=["a", "a"])
    for path in (file, tmp_path / "t.parquet"):
        with pytest.raises(sp.DataError) as wanted:
            read_table(path, ["aaa"])
        with pytest.raises(sp.DataError) as found:
            read_chunks(path, columns=["aaa"])
        assert str(found.value) == str(wanted.value)
    assert count_rows(file) is None


def test_progress_and_closing(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a\n" + "1.5\n" * 400_000)
    shares = []
    with read_chunks(file, 50_000) as chunks:
        for chunk in chunks:
            assert chunk.index[0] == chunks.start
            shares.append(chunks.progress)
            if chunks.start == 200_000:
                break
    assert shares == sorted(shares)
    assert 0.5 < shares[0] < shares[-1] < 1
    assert list(chunks) == []


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_memory_is_that_of_a_chunk(tmp_path, name):
    n, rows = 100_000, 1_000
    frame = pd.DataFrame({f"c{j}": np.arange(n) * (j + 0.5) for j in range(6)})
    file = tmp_path / name
    if name == "t.csv":
        frame.to_csv(file, index=False)
    else:
        frame.to_parquet(file, row_group_size=5_000)
    del frame
    next(read_chunks(file, rows))  # what is loaded once
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    held = [pa.total_allocated_bytes() - before for _ in read_chunks(file, rows)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = n * 6 * 8
    assert len(held) == 100
    assert peak + max(held) < whole / 2

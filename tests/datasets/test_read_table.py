"""Tables from files: what is read, and the sentence for each file that cannot be."""

import gzip
import os
import pathlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from setpoint._core.errors import DataError, FileError, KindError
from setpoint.datasets import read_chunks, read_table
from setpoint.datasets.text_dialect import TEXT_DIALECTS, TextDialect

TEXT = b"amount,fraud\n120.5,no\n950.25,yes\n"
TABLE = pd.DataFrame({"amount": [120.5, 950.25], "fraud": ["no", "yes"]})
NOISE = np.random.default_rng(0).bytes(4000).hex().encode()


def arrow_stream(path):
    table = pa.table({"amount": [120.5, 950.25], "fraud": ["no", "yes"]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def arrow_file(path, table):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def cut(path, write, size):
    write(path)
    path.write_bytes(path.read_bytes()[:size])


WRITERS = {
    "a.csv": lambda p: p.write_bytes(TEXT),
    "a.CSV": lambda p: p.write_bytes(TEXT),
    "bom.csv": lambda p: p.write_bytes(b"\xef\xbb\xbf" + TEXT),
    "crlf.csv": lambda p: p.write_bytes(TEXT.replace(b"\n", b"\r\n")),
    "blank.csv": lambda p: p.write_bytes(b"\n  \n" + TEXT + b"\n\n"),
    "comma-at-line-end.csv": lambda p: p.write_bytes(b"amount,fraud\n120.5,no,\n950.25,yes,\n"),
    "a.csv.gz": lambda p: p.write_bytes(gzip.compress(TEXT)),
    "a.tsv": lambda p: p.write_bytes(TEXT.replace(b",", b"\t")),
    "a.parquet": TABLE.to_parquet,
    "cut-from-more.parquet": lambda p: pd.concat([TABLE[:1], TABLE])[1:].to_parquet(p),
    "a.feather": TABLE.to_feather,
    "a.arrow": TABLE.to_feather,
    "stream.arrow": arrow_stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_type_gives_the_same_table(tmp_path, name):
    WRITERS[name](tmp_path / name)
    table = read_table(str(tmp_path / name))
    assert table.to_dict("list") == TABLE.to_dict("list")
    assert table.index.tolist() == [0, 1]
    assert read_table(tmp_path / name, columns=["fraud"]).equals(table[["fraud"]])
    turned = ["fraud", "amount"]
    assert read_table(tmp_path / name, columns=turned).equals(table[turned])
    assert read_table(tmp_path / name, columns=[]).shape == (2, 0)


@pytest.mark.parametrize("name", WRITERS)
def test_missing_column_is_named_for_every_type(tmp_path, name):
    WRITERS[name](tmp_path / name)
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / name, columns=["amount", "Frad"])
    assert str(caught.value) == (
        'there is no column "Frad" (wanted). Did you mean "fraud"? '
        'The columns are "amount", "fraud".'
    )


# file name, content, sentence ({} stands for the whole path)
BAD_TEXT = [
    ("empty.csv", b"", '"{}" is empty; it needs a header and rows.'),
    ("spaces.csv", b" \n\n", '"{}" is empty; it needs a header and rows.'),
    ("empty.csv.gz", gzip.compress(b""), '"{}" is empty; it needs a header and rows.'),
    ("empty.parquet", b"", '"{}" is empty; it needs a header and rows.'),
    ("bare.csv", b"a,b\n", '"{}" has a header but no rows.'),
    ("bare.tsv", b"a\tb\n", '"{}" has a header but no rows.'),
    (
        "a.xlsx",
        TEXT,
        '"a.xlsx" is of an unknown type; the name must end in '
        ".csv, .csv.gz, .tsv, .parquet, .feather or .arrow.",
    ),
    (
        "table",
        TEXT,
        '"table" is of an unknown type; the name must end in '
        ".csv, .csv.gz, .tsv, .parquet, .feather or .arrow.",
    ),
    (
        "i.csv",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        '"i.csv" holds a PNG image, not text; give a table.',
    ),
    ("j.csv", b"\xff\xd8\xff\xe0\0\x10JFIF", '"j.csv" holds a JPEG image, not text; give a table.'),
    ("d.csv", b"%PDF-1.7\n", '"d.csv" holds a PDF document, not text; give a table.'),
    (
        "x.csv",
        b"PK\x03\x04\x14\0",
        '"x.csv" holds an Excel workbook or a zip archive, not text; save the sheet as CSV UTF-8.',
    ),
    (
        "z.csv",
        gzip.compress(TEXT),
        '"z.csv" holds gzip, not text; rename it to end in .csv.gz, or unpack it.',
    ),
    (
        "n.csv",
        b"a,b\n\0\x01\x02",
        '"n.csv" does not hold text; it is another kind of file, renamed.',
    ),
    ("l.csv", "a,b\n1,é\n".encode("latin-1"), '"l.csv" is not UTF-8; save it as UTF-8.'),
    ("h.csv", "é,b\n1,2\n".encode("latin-1"), '"h.csv" is not UTF-8; save it as UTF-8.'),
    ("far.csv", b"a\n" + b"1\n" * 99999 + b"\xe9\n", '"far.csv" is not UTF-8; save it as UTF-8.'),
    (
        "u.csv",
        TEXT.decode().encode("utf-16"),
        '"u.csv" is not UTF-8 but UTF-16; save it as UTF-8.',
    ),
    ("r.csv", b"a,b,a\n1,2,3\n", '"r.csv" has 2 columns named "a"; rename them.'),
    ("r.tsv", b"a\ta\ta\n1\t2\t3\n", '"r.tsv" has 3 columns named "a"; rename them.'),
    (
        "r.csv.gz",
        gzip.compress(b'"a",a\n1,2\n'),
        '"r.csv.gz" has 2 columns named "a"; rename them.',
    ),
    (
        "long.csv",
        b"a,b\n1,2\n3,4,5\n",
        'line 3 of "long.csv" has 3 fields, the header 2; '
        "put a field that holds a separator in quotes.",
    ),
    (
        # pandas alone would take the first column for an index
        "all-long.csv",
        b"a,b\n1,2,3\n4,5,6\n",
        'line 2 of "all-long.csv" has 3 fields, the header 2; '
        "put a field that holds a separator in quotes.",
    ),
    (
        "long.csv.gz",
        gzip.compress(b'a,b\n1,"2\n2"\n\n3,4,5,6\n'),
        'line 5 of "long.csv.gz" has 4 fields, the header 2; '
        "put a field that holds a separator in quotes.",
    ),
    (
        "quote.csv",
        b'a,b\n1,2\n1,"x\n3,4\n',
        '"quote.csv" has a quote that is opened near line 3 and never closed; close it.',
    ),
    (
        "huge.csv",
        b"x" * 200_000,
        '"huge.csv" cannot be read as separated text: field larger than field limit (131072).',
    ),
    (
        "semi.csv",
        b"a;b\n1,5;2,5\n",
        '"semi.csv" is separated by semicolons, not commas; save it with commas.',
    ),
    (
        "tab.csv",
        b"a\tb\n1\t2\n",
        '"tab.csv" is separated by tabs, not commas; save it with commas.',
    ),
    ("comma.tsv", TEXT, '"comma.tsv" is separated by commas, not tabs; save it with tabs.'),
    (
        "plain.csv.gz",
        TEXT,
        '"plain.csv.gz" is not gzip; if it is plain text, rename it to end in .csv.',
    ),
    (
        "image.csv.gz",
        b"\x89PNG\r\n\x1a\n",
        '"image.csv.gz" holds a PNG image, not gzip; give a table.',
    ),
]


@pytest.mark.parametrize(("name", "content", "sentence"), BAD_TEXT, ids=[r[0] for r in BAD_TEXT])
def test_bad_file(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_table(path)
    assert str(caught.value) == sentence.replace("{}", str(path))
    assert isinstance(caught.value, ValueError)


REPEATED = pa.table([[1], [2]], names=["a", "a"])

# file name, how it is written, beginning of the sentence after the name
BAD_BINARY = [
    ("cut.parquet", lambda p: cut(p, TABLE.to_parquet, 900), "cannot be read as Parquet: "),
    ("tiny.parquet", lambda p: cut(p, TABLE.to_parquet, 4), "cannot be read as Parquet: "),
    ("text.parquet", lambda p: p.write_bytes(TEXT), "cannot be read as Parquet: "),
    ("cut.feather", lambda p: cut(p, TABLE.to_feather, 300), "cannot be read as Arrow: "),
    ("text.arrow", lambda p: p.write_bytes(TEXT), "cannot be read as Arrow: "),
    (
        "cut.csv.gz",
        lambda p: cut(p, lambda q: q.write_bytes(gzip.compress(TEXT + NOISE)), 2000),
        "cannot be unpacked as gzip (",
    ),
    ("p.csv", TABLE.to_parquet, "holds Parquet, not text; rename it to end in .parquet."),
    ("p.feather", TABLE.to_parquet, "holds Parquet, not Arrow; rename it to end in .parquet."),
    ("f.parquet", TABLE.to_feather, "holds Arrow, not Parquet; rename it to end in .arrow."),
    (
        "old.feather",
        lambda p: p.write_bytes(b"FEA1" + bytes(40)),
        "holds Feather version 1, not Arrow; write it again as Feather version 2 or Parquet.",
    ),
    (
        "twice.parquet",
        lambda p: parquet.write_table(REPEATED, p),
        'has 2 columns named "a"; rename them.',
    ),
    ("twice.arrow", lambda p: arrow_file(p, REPEATED), 'has 2 columns named "a"; rename them.'),
]


@pytest.mark.parametrize(("name", "write", "sentence"), BAD_BINARY, ids=[r[0] for r in BAD_BINARY])
def test_bad_binary_file(tmp_path, name, write, sentence):
    write(tmp_path / name)
    with pytest.raises(FileError) as caught:
        read_table(tmp_path / name)
    assert str(caught.value).startswith(f'"{name}" {sentence}')
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_damaged_inside_is_told_from_other_type(tmp_path):
    cut(tmp_path / "a.parquet", TABLE.to_parquet, 900)
    with pytest.raises(FileError, match=r"It may be cut short or another kind of file, renamed\.$"):
        read_table(tmp_path / "a.parquet")


def test_no_rows_in_parquet(tmp_path):
    TABLE[:0].to_parquet(tmp_path / "a.parquet")
    with pytest.raises(FileError, match=r'a\.parquet" has a header but no rows\.$'):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("laons.csv", "loans.csv"),
        ("loans.cvs", "loans.csv"),
        ("Loans.csv", "loans.csv"),
        ("loan.parquet", "loans.parquet"),
        ("2024.csv", None),  # only the ending is alike
    ],
)
def test_no_such_file(tmp_path, asked, near):
    for name in ("loans.csv", "loans.parquet", "people.csv"):
        (tmp_path / name).write_bytes(TEXT)
    (tmp_path / "2025.csv").mkdir()
    with pytest.raises(FileError) as caught:
        read_table(tmp_path / asked)
    hint = f' Did you mean "{tmp_path / near}"?' if near else ""
    assert str(caught.value) == f'there is no file "{tmp_path / asked}".{hint}'


def test_no_such_folder(tmp_path):
    with pytest.raises(FileError) as caught:
        read_table(tmp_path / "sub" / "a.csv")
    folder = tmp_path / "sub"
    assert (
        str(caught.value)
        == f'there is no file "{folder / "a.csv"}": there is no folder "{folder}".'
    )


def test_folder(tmp_path):
    with pytest.raises(FileError) as caught:
        read_table(tmp_path)
    assert str(caught.value) == f'"{tmp_path}" is a folder; give one file in it.'


def test_file_that_may_not_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)

    def refuse(*args, **kwargs):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(pathlib.Path, "open", refuse)
    with pytest.raises(FileError) as caught:
        read_table(path)
    assert str(caught.value) == f'"{path}" cannot be opened: Permission denied.'


def test_columns_given_as_text(tmp_path):
    with pytest.raises(KindError, match=r'columns is the text "ab"; give a list: columns=\["ab"\]'):
        read_table(tmp_path / "a.csv", columns="ab")


def test_columns_named_twice(tmp_path):
    with pytest.raises(DataError, match=r"columns names one of a, b, a twice; name each once\."):
        read_table(tmp_path / "a.csv", columns=["a", "b", "a"])


def test_named_index_is_a_column_like_any_other(tmp_path):
    table = TABLE.set_index("amount")
    table.to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").to_dict("list") == TABLE.to_dict("list")
    assert read_table(tmp_path / "a.parquet", columns=["fraud"]).columns.tolist() == ["fraud"]


def test_column_names_are_text(tmp_path):
    pd.DataFrame({1: [1], 2: [2]}).to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").columns.tolist() == ["1", "2"]


def test_folder_named_key_value_adds_no_column(tmp_path):
    folder = tmp_path / "split=train"
    folder.mkdir()
    TABLE.to_parquet(folder / "a.parquet")
    assert read_table(folder / "a.parquet").columns.tolist() == ["amount", "fraud"]


def test_floats_return_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(7)
    values = rng.random(2000) * 10.0 ** rng.integers(-300, 300, 2000)
    (tmp_path / "a.csv").write_text("p\n" + "\n".join(map(repr, values.tolist())) + "\n")
    assert read_table(tmp_path / "a.csv")["p"].to_numpy().tolist() == values.tolist()


def test_long_texts_are_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text,y\n" + b"x" * 200_000 + b",1\n")
    assert len(read_table(tmp_path / "a.csv")["text"][0]) == 200_000


def test_columns_without_a_name_do_not_count_as_repeated(tmp_path):
    (tmp_path / "a.csv").write_bytes(b",,x\n1,2,3\n")
    assert read_table(tmp_path / "a.csv").shape == (1, 3)


def test_a_new_dialect_is_one_row(tmp_path, monkeypatch):
    monkeypatch.setitem(TEXT_DIALECTS, ".ssv.gz", TextDialect(";", "semicolons", zipped=True))
    file = tmp_path / "a.ssv.gz"
    file.write_bytes(gzip.compress(TEXT.replace(b",", b";")))
    assert read_table(file).equals(TABLE)
    with read_chunks(file, rows=1) as chunks:
        assert pd.concat(chunks).equals(TABLE)
    file.write_bytes(gzip.compress(TEXT))
    with pytest.raises(FileError, match="separated by commas, not semicolons"):
        read_table(file)

"""Rows to work on: bundled sets, tables from files, columns with a stated role.

The room reads and checks; it never guesses. A file is read as what its name says, a column is used
for the role the caller states, a label has the positive value that was declared. Whatever cannot be
used is answered by a sentence that names the file, column or row and the way out.

=====================  ==========================================================================
:func:`load`           a bundled set by name; :func:`names` lists them, :class:`Dataset` is one
:func:`read_table`     a table from ``.csv``, ``.csv.gz``, ``.tsv``, ``.parquet``, ``.feather``
:func:`read_chunks`    the same some rows at a time, as :class:`Chunks`; :func:`count_rows`
:func:`column`         a column of a table, for a role
:func:`numbers`        a column as finite 64-bit floats
:func:`labelled`       features and a 0/1 label, as a :class:`Labelled`
:class:`Schema`        what the columns of a user's table are, checked again at every later table
:class:`Features`      a table as a matrix of numbers for a linear model or a network
:class:`Codes`         a table as a matrix of numbers for trees, categories as codes
:func:`split`          rows parted by class into train and tune, as a :class:`Split`
:func:`part`           rows parted into folds and rows that certify, as :class:`Parts`
=====================  ==========================================================================

Rows are counted from 1, the header not counted, and called *data rows* in messages; *lines* are
lines of a text file, the header being line 1.
"""

from __future__ import annotations

from setpoint.datasets.bundled import Dataset, load, names
from setpoint.datasets.columns.column_roles import column, numbers
from setpoint.datasets.columns.features import Features
from setpoint.datasets.columns.schema import Column, Schema
from setpoint.datasets.columns.tree_codes import Codes
from setpoint.datasets.labels import Labelled, labelled
from setpoint.datasets.parts import Parts, part
from setpoint.datasets.read_table import read_table
from setpoint.datasets.stratified_split import Split, split
from setpoint.datasets.table_chunks import Chunks, count_rows, read_chunks

__all__ = [
    "Dataset",
    "load",
    "names",
    "read_table",
    "Chunks",
    "read_chunks",
    "count_rows",
    "column",
    "numbers",
    "Labelled",
    "labelled",
    "Column",
    "Schema",
    "Features",
    "Codes",
    "Split",
    "split",
    "Parts",
    "part",
]


def __dir__() -> list[str]:
    return sorted(__all__)

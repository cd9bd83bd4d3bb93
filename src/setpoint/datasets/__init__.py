"""Rows to work on: bundled sets, tables from files, columns with a stated role.

The room reads and checks; it never guesses. A file is read as what its name says, a column is used
for the role the caller states, a label has the positive value that was declared. Whatever cannot be
used is answered by a sentence that names the file, column or row and the way out.

=====================  ==========================================================================
:func:`load`           a bundled set by name; :func:`names` lists them, :class:`Dataset` is one
:func:`read_table`     a table from ``.csv``, ``.csv.gz``, ``.tsv``, ``.parquet``, ``.feather``
:func:`column`         a column of a table, for a role
:func:`numbers`        a column as finite 64-bit floats
:func:`labelled`       features and a 0/1 label, as a :class:`Labelled`
:class:`Features`      a table as a matrix of numbers for a linear model or a network
:func:`split`          rows parted by class into train and tune, as a :class:`Split`
=====================  ==========================================================================

Rows are counted from 1, the header not counted, and called *data rows* in messages; *lines* are
lines of a text file, the header being line 1.
"""

from __future__ import annotations

from setpoint.datasets.bundled import Dataset, load, names
from setpoint.datasets.columns import column, numbers
from setpoint.datasets.features import Features
from setpoint.datasets.labels import Labelled, labelled
from setpoint.datasets.splits import Split, split
from setpoint.datasets.tables import read_table

__all__ = [
    "Dataset",
    "load",
    "names",
    "read_table",
    "column",
    "numbers",
    "Labelled",
    "labelled",
    "Features",
    "Split",
    "split",
]

"""Dialects of text tables: which ending of a name promises which separator, zipped or not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextDialect:
    """How a table is written as text, in UTF-8 with a header line.

    Attributes
    ----------
    separator : str
        One character.
    separators : str
        Its name in the plural, for sentences.
    zipped : bool
        Whether the text is packed by gzip.
    """

    separator: str
    separators: str
    zipped: bool = False


#: ending of a file's name -> dialect; a new dialect is one more row
TEXT_DIALECTS = {
    ".csv": TextDialect(",", "commas"),
    ".csv.gz": TextDialect(",", "commas", zipped=True),
    ".tsv": TextDialect("\t", "tabs"),
}

#: separator -> its name: those of the dialects, and those that files called .csv often have instead
SEPARATORS = {dialect.separator: dialect.separators for dialect in TEXT_DIALECTS.values()} | {
    ";": "semicolons",
    "|": "bars",
}

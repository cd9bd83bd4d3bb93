"""Sentences about names: the nearest valid word, and short lists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: object, valid: Iterable[object]) -> str | None:
    """The valid word nearest to ``word``, or None if nothing is near.

    >>> nearest("recal", ["precision", "recall"])
    'recall'
    """
    words = {str(v).lower(): str(v) for v in valid}
    matches = difflib.get_close_matches(str(word).lower(), list(words), n=1, cutoff=0.6)
    return words[matches[0]] if matches else None


def did_you_mean(word: object, valid: Iterable[object], otherwise: str = "") -> str:
    """End of a sentence: a suggestion if there is a near word, else ``otherwise``.

    >>> did_you_mean("recal", ["precision", "recall"])
    'did you mean recall?'
    """
    word_near = nearest(word, valid)
    return f"did you mean {word_near}?" if word_near else otherwise


def listing(items: Iterable[object], most: int = 8) -> str:
    """``a, b, c`` with an ellipsis after ``most`` items.

    >>> listing("abc", most=2)
    'a, b, …'
    """
    words = [str(i) for i in items]
    return ", ".join(words[:most]) + (", …" if len(words) > most else "")

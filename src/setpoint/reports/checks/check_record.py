"""Record of a check: one thing that may be wrong with the data, and the finding on it."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._core.errors import KindError

PASSED, LOOK, NOT_APPLICABLE = "passed", "look", "not applicable"


@dataclass(frozen=True)
class Check:
    """The finding of a check.

    Attributes
    ----------
    code : str
        "SP101".
    title : str
    status : {"passed", "look", "not applicable"}
        "look": something a person should look at; nothing is forbidden by it.
    sentence : str
    """

    code: str
    title: str
    status: str
    sentence: str

    def __post_init__(self) -> None:
        if self.status not in (PASSED, LOOK, NOT_APPLICABLE):
            raise KindError(
                f'a check is "{PASSED}", "{LOOK}" or "{NOT_APPLICABLE}"; not {self.status!r}'
            )

    def __str__(self) -> str:
        return f"{self.code} {self.title}: {self.status}. {self.sentence}"


@dataclass(frozen=True)
class CheckName:
    """The code and title of a check, which its findings bear.

    >>> print(CheckName("SP102", "Duplicates").passed("No row stands twice."))
    SP102 Duplicates: passed. No row stands twice.
    """

    code: str
    title: str

    def passed(self, sentence: str) -> Check:
        """Nothing to look at."""
        return Check(self.code, self.title, PASSED, sentence)

    def look(self, sentence: str) -> Check:
        """Something that a person should look at."""
        return Check(self.code, self.title, LOOK, sentence)

    def not_applicable(self, why: str) -> Check:
        """Nothing that could be checked."""
        return Check(self.code, self.title, NOT_APPLICABLE, why)

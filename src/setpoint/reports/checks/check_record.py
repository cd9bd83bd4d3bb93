"""Record of a check: one thing that may be wrong with the data, and what was found."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._core.errors import KindError

PASSED, LOOK, NOT_APPLICABLE = "passed", "look", "not applicable"


@dataclass(frozen=True)
class Check:
    """What a check found.

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

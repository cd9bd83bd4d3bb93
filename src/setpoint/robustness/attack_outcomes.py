"""Outcomes of attacks: each by itself, at a radius, and against a promise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AttackRun:
    """One attack of an evaluation.

    Attributes
    ----------
    name : str
    ours : bool
    tried, won : int
        Images it was run on, and how many of them it beat within the greatest eps.
    first : int
        Images whose worst point is its own.
    broken : int
        Points at which the model gave no numbers; they never count as a success.
    seconds : float
    forwards : int or None
        Images it put through the model; None where it does not tell.
    failures : tuple of (str, int)
        What it raised, and how many images were judged without it.
    """

    name: str
    ours: bool
    tried: int
    won: int
    first: int
    broken: int
    seconds: float
    forwards: int | None
    failures: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Level:
    """What is left of the accuracy at one radius: a bound from above.

    Attributes
    ----------
    eps : float
    right, images : int
        Images that no attack has beaten within eps, of all.
    accuracy : float
        right / images: robust accuracy on these images is at most this.
    interval : (float, float)
        Exact binomial, two-sided: the accuracy under these attacks on images like these.
    at_most : float
        Exact binomial, one-sided: robust accuracy on images like these is at most this.
    confidence : float
    """

    eps: float
    right: int
    images: int
    accuracy: float
    interval: tuple[float, float]
    at_most: float
    confidence: float


REFUTED, BROKEN, NOT_REFUTED = "REFUTED", "BROKEN", "NOT REFUTED"


@dataclass(frozen=True)
class Promise:
    """What attacks say of a promise "robust accuracy at eps >= floor".

    Attributes
    ----------
    verdict : {"REFUTED", "BROKEN", "NOT REFUTED"}
        REFUTED: on images like these it does not hold, at the confidence. BROKEN: it does not hold
        on these images, which are too few to speak for others. NOT REFUTED: neither, and that is
        no proof.
    account : str
        What was asked and what is left, without the verdict.
    holds : bool
        Whether nothing was found against it.
    """

    verdict: str
    account: str
    holds: bool

    @property
    def sentence(self) -> str:
        """The verdict and the account of it."""
        return f"{self.verdict}: {self.account}"

"""The Blackwell order; here, the answer to "is `L ⪯ M`?": a verdict, and for NO a witness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from residua.bounds import Verdict


class Witness(NamedTuple):
    """A point where domination fails: `h_L(x) - h_M(x) >= gap`, proven.

    The gap is 0.0 where the curves differ by less than the smallest float.
    """

    x: float
    gap: float


@dataclass(frozen=True, slots=True)
class Domination:
    """Whether `L ⪯ M`; for NO, with a witness."""

    verdict: Verdict
    witness: Witness | None = None

    @property
    def proven(self) -> bool:
        return self.verdict is Verdict.YES

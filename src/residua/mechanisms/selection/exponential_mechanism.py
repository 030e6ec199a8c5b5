"""The exponential mechanism, through its bounded range.

McSherry and Talwar 2007: a candidate `y` is drawn with probability proportional to
`e^{eps u(y) / (2 Δ)}`. The losses of one pair of neighbours then lie in an interval of length `eps`
(Durfee and Rogers 2019), which is tighter than `eps`-DP; the supremum of all such losses is
`B_eps` (Dong, Durfee and Rogers 2020; `pld/families/bounded_range.py`). If adding a record can only
raise scores (`monotonic`), the length is `eps / 2` under add-remove and zero-out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.mechanisms.relations import REPLACE_ONE
from residua.pld.pld import Pld


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """A choice proportional to `e^{eps u / (2 Δ)}`; `Δ` is the sensitivity of the score `u`."""

    eps: float
    monotonic: bool = False

    kind: ClassVar[str] = "exponential_mechanism"
    pair: ClassVar[str] = "sup over t of two-point pairs with losses t and t - ε: range ε"
    reference: ClassVar[str] = "McSherry and Talwar 2007; Dong, Durfee and Rogers 2020"

    def __post_init__(self) -> None:
        checks.flag("monotonic", self.monotonic)
        checks.set_fields(self, eps=checks.non_negative("eps", self.eps))

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        halved = self.monotonic and relation != REPLACE_ONE
        return both(relation, limits.bounded_range(Fraction(self.eps) / (1 + halved), side))

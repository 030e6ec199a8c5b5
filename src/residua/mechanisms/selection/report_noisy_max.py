"""Report noisy max: add noise to every score and name the largest.

With `e = 2Δ / scale` (half of that for `monotonic` scores under add-remove and zero-out):

* Gumbel noise is the exponential mechanism exactly: range `e`.
* Exponential noise is permute-and-flip (Ding et al. 2021; McKenna and Sheldon 2020): `e`-DP.
* Laplace noise is `e`-DP (Dwork and Roth 2014, section 3.3).

`R_e` is the best that is known for the last two without a bound on the number of candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.mechanisms.relations import REPLACE_ONE
from residua.pld.constructors import identity
from residua.pld.pld import Pld

NOISES = ("gumbel", "exponential", "laplace")


@dataclass(frozen=True)
class ReportNoisyMax(Mechanism):
    """The candidate with the largest noisy score; noise of this kind and scale on each."""

    scale: float
    noise: str = "laplace"
    sensitivity: float = 1.0
    monotonic: bool = False

    kind: ClassVar[str] = "report_noisy_max"
    pair: ClassVar[str] = "range ε (Gumbel) or ε-DP, ε = 2Δ/b, or Δ/b for monotonic scores"
    reference: ClassVar[str] = "Dwork and Roth 2014; McKenna and Sheldon 2020; Ding et al. 2021"

    def __post_init__(self) -> None:
        checks.one_of("noise", self.noise, NOISES)
        checks.flag("monotonic", self.monotonic)
        checks.set_fields(
            self,
            scale=checks.positive("scale", self.scale),
            sensitivity=checks.non_negative("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        times = 1 if self.monotonic and relation != REPLACE_ONE else 2
        e = times * Fraction(self.sensitivity) / Fraction(self.scale)
        if self.noise == "gumbel":
            return both(relation, limits.bounded_range(e, side))
        # Below, nothing is known but what two candidates at equal scores would show: leave it.
        return both(relation, limits.pure_dp(e, "above") if side == "above" else identity())

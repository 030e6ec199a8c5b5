"""Mechanisms that answer with a choice among candidates or categories."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import LARGEST_EPS, LEAST_EPS
from residua.errors import ArgumentTypeError
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Flag, Mechanism, NonNegative, Positive, both
from residua.mechanisms.relations import REPLACE_ONE, ZERO_OUT
from residua.pld.arithmetic.exact import Side, from_masses, response
from residua.pld.constructors import from_exact, identity, infinite
from residua.pld.pld import Pld
from residua.sizes import LARGEST_COUNT

NOISES = ("gumbel", "exponential", "laplace")


@checks.keyword_only(
    "eps or noise_parameter",
    "RandomizedResponse(eps={}) or RandomizedResponse(noise_parameter={})",
)
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """Randomized response among `num_buckets`, by `eps` or by `noise_parameter`.

    The truth has `e^eps` times the probability of each other category. With two categories it is
    `R_eps`, exactly. Given by `noise_parameter` instead (as in dp_accounting: a uniform category
    with that probability) the masses are rational and exact.

    It is a local mechanism, so the relation is an exchange of values; blanking a record out means
    that its report is drawn from any mixture of the others, which the same pair dominates.
    """

    eps: float | None = None
    num_buckets: int = 2
    noise_parameter: float | None = None

    relations: ClassVar[tuple[str, ...]] = (REPLACE_ONE, ZERO_OUT)
    pair: ClassVar[str] = "(e^ε, 1, 1, …) | (1, e^ε, 1, …), normalised"
    reference: ClassVar[str] = "Warner 1965; Kairouz, Bonawitz and Ramage 2016"

    def __post_init__(self) -> None:
        if (self.eps is None) == (self.noise_parameter is None):
            raise ArgumentTypeError(
                "randomized_response takes either eps or noise_parameter, got "
                f"eps={checks.shown(self.eps)}, "
                f"noise_parameter={checks.shown(self.noise_parameter)}"
            )
        buckets = checks.count("num_buckets", self.num_buckets)
        checks.require(2 <= buckets <= LARGEST_COUNT, "num_buckets", "between 2 and 2**53", buckets)
        checks.set_fields(self, num_buckets=buckets)
        if self.eps is not None:
            checks.set_fields(self, eps=checks.non_negative("eps", self.eps))
        else:
            noise = checks.probability("noise_parameter", self.noise_parameter)
            checks.set_fields(self, noise_parameter=noise)

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._pld(side))

    def _pld(self, side: Side) -> Pld:
        k = self.num_buckets
        if self.noise_parameter is not None:
            noise = Fraction(self.noise_parameter)
            if noise == 0:
                return infinite()
            other = noise / k
            masses = [1 - noise + other, other, other * (k - 2)]
            return from_exact(from_masses(masses, [masses[1], masses[0], masses[2]]))
        eps = Fraction(self.eps or 0.0)
        if eps == 0:
            return identity()
        if k == 2 or not LEAST_EPS <= eps <= LARGEST_EPS:
            return limits.pure_dp(eps, side) if k == 2 or side == "above" else identity()
        return from_exact(response(eps, Fraction(0), side, k))


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """A choice proportional to `e^{eps u / (2 Δ)}`; `Δ` is the sensitivity of the score `u`.

    The losses of one pair of neighbours lie in an interval of length `eps` (Durfee and Rogers
    2019), which is tighter than `eps`-DP; the supremum of all such losses is `B_eps` (Dong, Durfee
    and Rogers 2020; `pld/families/symmetric.py`). If adding a record can only raise scores
    (`monotonic`), the length is `eps / 2` under add-remove and zero-out.
    """

    eps: NonNegative
    monotonic: Flag = False

    pair: ClassVar[str] = "sup over t of two-point pairs with losses t and t - ε: range ε"
    reference: ClassVar[str] = "McSherry and Talwar 2007; Dong, Durfee and Rogers 2020"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        halved = self.monotonic and relation != REPLACE_ONE
        return both(relation, limits.bounded_range(Fraction(self.eps) / (1 + halved), side))


@dataclass(frozen=True)
class ReportNoisyMax(Mechanism):
    """The candidate with the largest noisy score; noise of this kind and scale on each.

    With `e = 2Δ / scale` (half of that for `monotonic` scores under add-remove and zero-out):

    * Gumbel noise is the exponential mechanism exactly: range `e`.
    * Exponential noise is permute-and-flip (Ding et al. 2021; McKenna and Sheldon 2020): `e`-DP.
    * Laplace noise is `e`-DP (Dwork and Roth 2014, section 3.3).

    `R_e` is the best that is known for the last two without a bound on the number of candidates.
    """

    scale: Positive
    noise: str = "laplace"
    sensitivity: NonNegative = 1.0
    monotonic: Flag = False

    pair: ClassVar[str] = "range ε (Gumbel) or ε-DP, ε = 2Δ/b, or Δ/b for monotonic scores"
    reference: ClassVar[str] = "Dwork and Roth 2014; McKenna and Sheldon 2020; Ding et al. 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("noise", self.noise, NOISES)

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        times = 1 if self.monotonic and relation != REPLACE_ONE else 2
        e = times * Fraction(self.sensitivity) / Fraction(self.scale)
        if self.noise == "gumbel":
            return both(relation, limits.bounded_range(e, side))
        # No lower bound is known beyond what two candidates at equal scores would show.
        return both(relation, limits.pure_dp(e, "above") if side == "above" else identity())

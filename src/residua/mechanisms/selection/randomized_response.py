"""Randomized response: report the truth, or now and then a category at random.

Warner 1965; Kairouz, Bonawitz and Ramage 2016 for `k` categories. The truth has `e^eps` times the
probability of each other category. With two categories it is `R_eps`, exactly. Given by
`noise_parameter` instead (as in dp_accounting: a uniform category with that probability) the
masses are rational and exact.

It is a local mechanism, so the relation is an exchange of values; blanking a record out means
that its report is drawn from any mixture of the others, which the same pair dominates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.errors import ArgumentTypeError
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.mechanisms.relations import REPLACE_ONE, ZERO_OUT
from residua.pld.arithmetic.rational import from_masses, response
from residua.pld.constructors import from_exact, identity, infinite
from residua.pld.pld import Pld
from residua.sizes import LARGEST_COUNT


@checks.keyword_only(
    "eps or noise_parameter",
    "RandomizedResponse(eps={}) or RandomizedResponse(noise_parameter={})",
)
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """Randomized response among `num_buckets`, by `eps` or by `noise_parameter`."""

    eps: float | None = None
    num_buckets: int = 2
    noise_parameter: float | None = None

    kind: ClassVar[str] = "randomized_response"
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

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._one(side))

    def _one(self, side: Side) -> Pld:
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
        if k == 2 or not 2**-1000 <= eps <= 600:
            return limits.pure_dp(eps, side) if k == 2 or side == "above" else identity()
        return from_exact(response(eps, Fraction(0), side, k))

"""A mechanism run on a Poisson sample of the records.

Add-remove and zero-out: `(1-q) C + q A` against `C`, with `(A, C)` the mechanism's own pair: the
curve follows exactly (Zhu, Dong and Wang 2022, theorem 11; `pld/amplification/sampling.py`).
Gaussian noise stays in closed form, finite pairs stay exact, everything else is discretised.

Replace-one needs three outputs: with the record, with another, with neither. For Gaussian noise
whose `sensitivity` bounds what one record contributes the pair is tight
(`subsampled_gaussian.py`). Otherwise there are upper bounds: two steps, removing and adding, and
for symmetric noise with a `sensitivity` of that meaning also advanced joint convexity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, mechanism
from residua.mechanisms.noise.discrete_gaussian import DiscreteGaussian
from residua.mechanisms.noise.discrete_laplace import DiscreteLaplace
from residua.mechanisms.noise.gaussian import Gaussian
from residua.mechanisms.noise.laplace import Laplace
from residua.mechanisms.noise.truncated_laplace import TruncatedLaplace
from residua.mechanisms.relations import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, directions
from residua.pld.amplification import sampling
from residua.pld.pld import Pld


@dataclass(frozen=True)
class PoissonSampled(Mechanism):
    """`mechanism` on a sample that takes each record with probability `sampling_rate`."""

    mechanism: Mechanism
    sampling_rate: float

    kind: ClassVar[str] = "poisson_sampled"
    pair: ClassVar[str] = "(1-q) C + q A | C, for its pair A | C; replace-one: | (1-q) C + q B"
    reference: ClassVar[str] = "Balle et al. 2018, theorem 2; Zhu, Dong and Wang 2022, theorem 11"

    @property
    def supported(self) -> tuple[str, ...]:
        """Its own are built from the add-remove pairs of the mechanism."""
        known = self.mechanism.supported
        both = tuple(r for r in (ADD_REMOVE, ZERO_OUT) if r in known)
        return (*both, REPLACE_ONE) if ADD_REMOVE in known else both

    def __post_init__(self) -> None:
        mechanism("mechanism", self.mechanism)
        checks.require(
            bool({ADD_REMOVE, ZERO_OUT} & set(self.mechanism.supported)),
            "mechanism",
            "one with an add-remove or zero-out pair, to be sampled",
            self.mechanism,
        )
        checks.set_fields(
            self, sampling_rate=checks.probability("sampling_rate", self.sampling_rate)
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        inner, rate = self.mechanism, self.sampling_rate
        if isinstance(inner, Gaussian):
            return {
                direction: limits.subsampled_gaussian(
                    inner.sigma, rate, direction, inner.sensitivity, side
                )
                for direction in directions(relation)
            }
        if relation == REPLACE_ONE:
            return {"replace": self._replaced(accuracy, side)}
        pairs = inner.plds(relation, accuracy=accuracy, side=side)
        return {
            direction: sampling.poisson(pld, rate, direction, accuracy, side)
            for direction, pld in pairs.items()
        }

    def _replaced(self, accuracy: float, side: Side) -> Pld:
        inner = self.mechanism
        twice: Mechanism | None = None
        if isinstance(inner, DiscreteLaplace | DiscreteGaussian):
            twice = replace(inner, sensitivity=2 * inner.sensitivity)
        elif isinstance(inner, Laplace | TruncatedLaplace) and inner.sensitivity < 1e300:
            twice = replace(inner, sensitivity=2.0 * inner.sensitivity)
        pairs = inner.plds(ADD_REMOVE, accuracy=accuracy, side=side)
        replaced = twice.pld(relation=ADD_REMOVE, side=side) if twice else None
        return sampling.poisson_replaced(
            pairs["remove"], pairs["add"], replaced, self.sampling_rate, accuracy, side
        )

"""Mechanisms that run on a random sample of the records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import float_down, float_up
from residua.mechanisms import limits
from residua.mechanisms.mechanism import (
    Count,
    Inner,
    Mechanism,
    NonNegative,
    Positive,
    Probability,
)
from residua.mechanisms.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    TruncatedLaplace,
)
from residua.mechanisms.relations import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, directions
from residua.pld import amplification
from residua.pld.arithmetic.exact import Side
from residua.pld.pld import Pld


@dataclass(frozen=True)
class SubsampledGaussian(Mechanism):
    """Gaussian noise on the sum over a Poisson sample; one record contributes `sensitivity`.

    One step of DP-SGD, in closed form. Add-remove and zero-out: `(1-q) N(0, σ²) + q N(Δ, σ²)`
    against `N(0, σ²)` and its reversal (Abadi et al. 2016; tight by Zhu, Dong and Wang 2022,
    theorem 11). Replace-one: against `(1-q) N(0, σ²) + q N(-Δ, σ²)`, where `Δ` bounds what one
    record contributes. Two records contribute `v` and `v'` of norm at most `Δ`; by advanced joint
    convexity (Balle, Barthe and Gaboardi 2018, theorem 2) the curve is that of `N(v)` against a
    mixture of `N(0)` and `N(v')`, and mixtures of Gaussians at given distances are worst on a line
    (Choquette-Choo et al. 2024, Privacy amplification for matrix mechanisms).
    """

    sigma: Positive
    sampling_rate: Probability
    sensitivity: NonNegative = 1.0

    pair: ClassVar[str] = "(1-q) N(0, σ²) + q N(Δ, σ²) | N(0, σ²), or | (1-q) N(0) + q N(-Δ)"
    reference: ClassVar[str] = "Abadi et al. 2016; Zhu, Dong and Wang 2022, theorem 11"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return {
            direction: limits.subsampled_gaussian(
                self.sigma, self.sampling_rate, direction, self.sensitivity, side
            )
            for direction in directions(relation)
        }


@dataclass(frozen=True)
class PoissonSampled(Mechanism):
    """`mechanism` on a sample that takes each record with probability `sampling_rate`.

    Add-remove and zero-out: `(1-q) C + q A` against `C`, with `(A, C)` the mechanism's own pair:
    the curve follows exactly (Zhu, Dong and Wang 2022, theorem 11; see
    `pld/amplification.py`). Gaussian noise stays in closed form, finite pairs stay exact,
    everything else is discretised.

    Replace-one needs three outputs: with the record, with another, with neither. For Gaussian noise
    whose `sensitivity` bounds what one record contributes the pair is tight
    (`SubsampledGaussian`). Otherwise there are upper bounds: two steps, removing and adding, and
    for symmetric noise with a `sensitivity` of that meaning also advanced joint convexity.
    """

    mechanism: Inner
    sampling_rate: Probability

    pair: ClassVar[str] = "(1-q) C + q A | C, for its pair A | C; replace-one: | (1-q) C + q B"
    reference: ClassVar[str] = "Balle et al. 2018, theorem 2; Zhu, Dong and Wang 2022, theorem 11"

    @property
    def supported(self) -> tuple[str, ...]:
        """Those of the mechanism with two directions; replace-one is built from add-remove."""
        known = self.mechanism.supported
        crossed = tuple(r for r in (ADD_REMOVE, ZERO_OUT) if r in known)
        return (*crossed, REPLACE_ONE) if ADD_REMOVE in known else crossed

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(
            bool(self.supported),
            "mechanism",
            "one with an add-remove or zero-out pair, to be sampled",
            self.mechanism,
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        inner, rate = self.mechanism, self.sampling_rate
        if isinstance(inner, Gaussian):
            step = SubsampledGaussian(inner.sigma, rate, inner.sensitivity)
            return step.plds(relation, side=side)
        if relation == REPLACE_ONE:
            return {"replace": self._replace_one(accuracy, side)}
        pairs = inner.plds(relation, accuracy=accuracy, side=side)
        return {
            direction: amplification.poisson(pld, rate, direction, accuracy, side)
            for direction, pld in pairs.items()
        }

    def _replace_one(self, accuracy: float, side: Side) -> Pld:
        inner = self.mechanism
        doubled: Mechanism | None = None
        noises = DiscreteLaplace | DiscreteGaussian | Laplace | TruncatedLaplace
        if isinstance(inner, noises) and 2 * inner.sensitivity < math.inf:
            doubled = replace(inner, sensitivity=2 * inner.sensitivity)  # type: ignore[arg-type]
        pairs = inner.plds(ADD_REMOVE, accuracy=accuracy, side=side)
        replaced = doubled.pld(relation=ADD_REMOVE, side=side) if doubled else None
        return amplification.poisson_replaced(
            pairs["remove"], pairs["add"], replaced, self.sampling_rate, accuracy, side
        )


@dataclass(frozen=True)
class SampledWithoutReplacement(Mechanism):
    """`mechanism` on `sample_size` of `source_size` records, all subsets equally likely.

    Replace-one only: the sizes are public. With `γ = sample_size / source_size` and `(A, B)` the
    mechanism's pair for a replaced record, the curve for `x >= 1` is that of `(1-γ) B + γ A`
    against `B`, and the same for the reversal (Zhu, Dong and Wang 2022, theorem 11). No single pair
    of data sets attains both halves (Lebeda, Regehr, Kamath and Steinke 2024): this PLD is a
    supremum.
    """

    mechanism: Inner
    source_size: Count
    sample_size: Count

    relations: ClassVar[tuple[str, ...]] = (REPLACE_ONE,)
    pair: ClassVar[str] = "x ≥ 1: (1-γ) B + γ A | B, for its pair A | B; x < 1: mirrored"
    reference: ClassVar[str] = "Zhu, Dong and Wang 2022, theorem 11"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(
            REPLACE_ONE in self.mechanism.supported,
            "mechanism",
            "one with a replace-one pair, to be sampled without replacement",
            self.mechanism,
        )
        source, sample = self.source_size, self.sample_size
        checks.require(source >= 1, "source_size", "at least 1", source)
        checks.require(sample <= source, "sample_size", f"at most source_size={source}", sample)

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        inner = self.mechanism.pld(relation=relation, accuracy=accuracy, side=side)
        share = Fraction(self.sample_size, self.source_size)
        # A larger rate loses more.
        rate = float_up(share) if side == "above" else float_down(share)
        return {"replace": amplification.without_replacement(inner, rate, accuracy, side)}

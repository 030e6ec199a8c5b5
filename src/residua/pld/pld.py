"""`Pld`, the frozen value that everything else works with.

A PLD is kept as what it is: a composition of factors, `G_mu` on one side and a
multiset of randomized responses, Laplaces and finite lists on the other. Composition
only adds to the multiset; nothing is discretised. A curve is evaluated by the method
that fits (`evaluate.py`), and every number comes as a proven interval.

Operators say what the mathematics says: `+` composes, `n *` repeats, `<=` is the
Blackwell order (True only when proven), `|` and `&` are supremum and infimum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from residua import checks
from residua.bounds import Floats, Interval, Number, float_down, float_up
from residua.errors import ArgumentError, ArgumentTypeError
from residua.pld.families.atoms import SHOWN, Atoms
from residua.pld.families.factors import Factor, canonical_key, survival
from residua.pld.families.gaussian import Gaussian
from residua.work_limit import remembered_property

if TYPE_CHECKING:
    from residua.pld.curve.evaluate import Evaluator

ACCURACY = 1e-3
"""Width in `eps` that an enclosure may have unless another is asked for."""
_NONE = Interval(0.0, 0.0)
_MOST = 1 << 53
"""Counts are at most this, so that they are floats."""
_LASTING = {"_exact_variance", "mass_at_infinity_bounds", "mass_at_minus_infinity_bounds"}
"""Values that are computed once and do not depend on contours."""


class Pld:
    """A privacy loss distribution: the law of `Z = log dP/dQ` under `P`.

    Plain calls return the safe side as a float (or an array for an array); calls
    ending in `_bounds` return the `Interval`. Build one with the constructors
    (`gaussian`, `laplace`, `pure_dp`, `from_atoms`, …), not with this class.
    """

    __slots__ = ("__dict__", "_counts", "gaussian")

    gaussian: Gaussian | None
    _counts: dict[Factor, int]

    def __init__(self, gaussian: Gaussian | None, terms: Mapping[Factor, int]):
        object.__setattr__(self, "gaussian", gaussian)
        object.__setattr__(self, "_counts", dict(terms))

    @cached_property
    def terms(self) -> MappingProxyType[Factor, int]:
        """The factors besides the Gaussian, and how often each occurs, in canonical order.

        Sums of floats depend on their order. So that equal PLDs give the same digits, however they
        were composed, the order is a function of the factors alone.
        """
        counts = self._counts
        if len(counts) > 1:
            counts = {factor: counts[factor] for factor in sorted(counts, key=canonical_key)}
        return MappingProxyType(counts)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Pld is frozen; cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Pld is frozen; cannot delete {name!r}")

    def __reduce__(self) -> tuple[type[Pld], tuple[Gaussian | None, dict[Factor, int]]]:
        return Pld, (self.gaussian, self._counts)

    # -- identity ---------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """The same Gaussian variance and the same other factors (`compare` is mathematical)."""
        if not isinstance(other, Pld):
            return NotImplemented
        return self._exact_variance == other._exact_variance and self._counts == other._counts

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self._exact_variance, frozenset(self._counts.items())))

    @cached_property
    def _exact_variance(self) -> Fraction:
        return self.gaussian.exact_variance if self.gaussian else Fraction(0)

    def __repr__(self) -> str:
        if self.is_infinite:
            return "approximate_dp(0.0, 1.0)"
        parts = [(_gaussian_repr(d, s), n) for d, s, n in (self.gaussian or Gaussian(())).parts]
        parts += [(repr(factor), n) for factor, n in self.terms.items()]
        if not parts:
            return "identity()"
        if len(parts) > SHOWN:
            count = sum(n for _, n in parts)
            return f"<Pld: {count} queries of {len(parts)} kinds>"
        return " + ".join(text if n == 1 else f"{n} * {text}" for text, n in parts)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from residua.figures.notebook import pld_html

        return pld_html(self)

    # -- structure --------------------------------------------------------------------

    @property
    def is_infinite(self) -> bool:
        """Whether this is `inf`, the greatest PLD: all mass at `+inf`."""
        return len(self._counts) == 1 and next(iter(self._counts)).atom_count == 0

    @property
    def is_identity(self) -> bool:
        """Whether this is `Id`, the least PLD: no loss at all."""
        return self.gaussian is None and not self._counts

    @property
    def is_finite(self) -> bool:
        """Whether the loss takes finitely many values."""
        return self.gaussian is None and all(f.atom_count is not None for f in self.terms)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the PLD is known to equal its reversal."""
        return all(f.is_symmetric for f in self.terms) or (
            self._reversed == self if len(self.terms) > 1 else False
        )

    @cached_property
    def _reversed(self) -> Pld:
        if all(f.is_symmetric for f in self.terms):
            return self
        terms: dict[Factor, int] = {}
        for factor, n in self.terms.items():
            back = factor.reverse()
            terms[back] = terms.get(back, 0) + n
        flipped = Pld(self.gaussian, terms)
        flipped.__dict__["_reversed"] = self
        return flipped

    def reverse(self) -> Pld:
        """The PLD of `(Q, P)`: `h_rev(x) = 1 - x + x h(1/x)`."""
        return self._reversed

    @cached_property
    def mass_at_infinity_bounds(self) -> Interval:
        """Proven interval for `P`'s mass at `+inf`."""
        return _missing([(f.mass_at_infinity, n) for f, n in self.terms.items()])

    @cached_property
    def mass_at_minus_infinity_bounds(self) -> Interval:
        """Proven interval for `Q`'s mass at `-inf`."""
        return _missing([(f.mass_at_minus_infinity, n) for f, n in self.terms.items()])

    @property
    def mass_at_infinity(self) -> float:
        """`P`'s mass at `+inf`, rounded up."""
        return float(self.mass_at_infinity_bounds.hi)

    @property
    def mass_at_minus_infinity(self) -> float:
        """`Q`'s mass at `-inf`, rounded up."""
        return float(self.mass_at_minus_infinity_bounds.hi)

    # -- composition ------------------------------------------------------------------

    def __add__(self, other: Pld) -> Pld:
        """`L ⊕ M`: the law of the sum of independent losses."""
        if not isinstance(other, Pld):
            return NotImplemented
        if self.is_identity or other.is_infinite:
            return other
        if other.is_identity or self.is_infinite:
            return self
        # Unlike `dict(...)`, which would hash every factor of a stream again.
        terms = self._counts.copy()
        for factor, n in other._counts.items():
            terms[factor] = terms.get(factor, 0) + n
        if self.gaussian and other.gaussian:
            total: Gaussian | None = self.gaussian.compose(other.gaussian)
        else:
            total = self.gaussian or other.gaussian
        result = Pld(total, terms)
        for mass in ("mass_at_infinity_bounds", "mass_at_minus_infinity_bounds"):
            if self.__dict__.get(mass) == _NONE and getattr(other, mass) == _NONE:
                result.__dict__[mass] = _NONE
        return result

    def __radd__(self, other: object) -> Pld:
        """Compose from the left, so that `sum(plds)` composes a list."""
        return self if other == 0 else NotImplemented

    def __mul__(self, n: int) -> Pld:
        """`n * L`: the `n`-fold composition."""
        n = checks.count("n", n)
        if n == 0:
            from residua.pld.constructors import identity

            return identity()
        if self.is_infinite:
            return self
        counts = [*self.terms.values(), *(k for _, _, k in (self.gaussian or Gaussian(())).parts)]
        checks.require(
            n * max(counts, default=1) <= _MOST,
            "n",
            "small enough that counts stay at most 2**53",
            n,
        )
        return Pld(
            self.gaussian.power(n) if self.gaussian else None,
            {factor: n * k for factor, k in self.terms.items()},
        )

    __rmul__ = __mul__

    # -- order and lattice --------------------------------------------------------------

    def __le__(self, other: Pld) -> bool:
        """Whether `self ⪯ other` is proven."""
        if not isinstance(other, Pld):
            return NotImplemented
        from residua.pld.order.compare import dominated

        return dominated(self, other).proven

    def __ge__(self, other: Pld) -> bool:
        """Whether `other ⪯ self` is proven."""
        if not isinstance(other, Pld):
            return NotImplemented
        return other <= self

    def __lt__(self, other: Pld) -> bool:
        """Whether `self ⪯ other` is proven and the converse refuted."""
        if not isinstance(other, Pld):
            return NotImplemented
        from residua.pld.order.compare import Order, compare

        return compare(self, other).verdict is Order.LESS

    def __gt__(self, other: Pld) -> bool:
        """Whether `other ⪯ self` is proven and the converse refuted."""
        if not isinstance(other, Pld):
            return NotImplemented
        return other < self

    def __or__(self, other: Pld) -> Pld:
        """The supremum: the least PLD above both (rounded up where it must be)."""
        if not isinstance(other, Pld):
            return NotImplemented
        from residua.pld.lattice import supremum

        return supremum([self, other])

    def __and__(self, other: Pld) -> Pld:
        """The infimum: the greatest PLD below both (rounded down where it must be)."""
        if not isinstance(other, Pld):
            return NotImplemented
        from residua.pld.lattice import infimum

        return infimum([self, other])

    # -- curves -----------------------------------------------------------------------

    @cached_property
    def _evaluator(self) -> Evaluator:
        from residua.pld.curve.evaluate import Evaluator

        return Evaluator(self)

    def _without_caches(self) -> Pld:
        """The same value, without what was worked out from it."""
        twin = Pld(self.gaussian, self._counts)
        twin.__dict__["_hash"] = self._hash
        return twin

    def _workspace(self) -> Pld:
        """The same PLD for one search: its evaluator keeps the contours that it makes.

        Reads of `self` stay pure functions, since the copy is discarded with its contours.
        """
        twin = self._copy_for_search()
        if self._reversed is not self:
            back = self._reversed._copy_for_search()
            twin.__dict__["_reversed"], back.__dict__["_reversed"] = back, twin
        return twin

    def _copy_for_search(self) -> Pld:
        twin = Pld(self.gaussian, self._counts)
        known = self.__dict__
        twin.__dict__.update({name: known[name] for name in _LASTING & known.keys()})
        twin.__dict__["_evaluator"] = self._evaluator.workspace(twin)
        return twin

    def hockey_stick(self, x: Any) -> Any:
        """`h(x) = E[(1 - x e^-Z)_+]` for `x > 0`, upper bound."""
        return _plain(self.hockey_stick_bounds(x).hi)

    def hockey_stick_bounds(self, x: Any, accuracy: float | None = None) -> Interval:
        """Proven interval for `h(x)`; see `delta_bounds` for `accuracy`."""
        xs = checks.array_satisfying(
            "x", x, lambda v: (v > 0) & (v < np.inf), "positive and finite"
        )
        return self._evaluator.at_x(xs, _accuracy(accuracy))

    def delta(self, eps: Any) -> Any:
        """The privacy profile `delta(eps) = h(e^eps)`, upper bound."""
        return _plain(self.delta_bounds(eps).hi)

    def delta_bounds(self, eps: Any, accuracy: float | None = None) -> Interval:
        """Proven interval for `delta(eps)`.

        Its width is relative 1e-6 or less where a Gaussian takes part (unless it is sampled in
        very few queries, or tiny beside very many atoms); elsewhere it amounts to at most
        `accuracy` in `eps` (default 1e-3).
        """
        t = checks.array_satisfying("eps", eps, np.isfinite, "finite")
        return self._evaluator.at_log_x(t, 0.0, _accuracy(accuracy))

    def epsilon(self, delta: Any) -> Any:
        """The least `eps >= 0` with `delta(eps) <= delta`, upper bound (inf if there is none)."""
        return _plain(self.epsilon_bounds(delta).hi)

    def epsilon_bounds(self, delta: Any, accuracy: float | None = None) -> Interval:
        """Proven interval for `epsilon(delta)`."""
        from residua.pld.curve.epsilon import epsilon_bounds

        levels = checks.array_satisfying("delta", delta, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
        return epsilon_bounds(self, levels, _accuracy(accuracy))

    def tradeoff(self, alpha: Any) -> Any:
        """The least type II error at type I error `alpha`, lower bound."""
        return _plain(self.tradeoff_bounds(alpha).lo)

    def tradeoff_bounds(self, alpha: Any) -> Interval:
        """Proven interval for `tradeoff(alpha)`."""
        from residua.pld.curve.tradeoff import tradeoff_bounds

        levels = checks.array_satisfying("alpha", alpha, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
        return tradeoff_bounds(self, levels)

    def inverse_tradeoff(self, beta: Any) -> Any:
        """The least type I error at type II error `beta`, lower bound."""
        return _plain(self.inverse_tradeoff_bounds(beta).lo)

    def inverse_tradeoff_bounds(self, beta: Any) -> Interval:
        """Proven interval for `inverse_tradeoff(beta)`: the tradeoff curve of the reversal."""
        from residua.pld.curve.tradeoff import tradeoff_bounds

        levels = checks.array_satisfying("beta", beta, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
        return tradeoff_bounds(self.reverse(), levels)

    def renyi(self, alpha: Any) -> Any:
        """The Rényi divergence of order `alpha > 0` (1 is KL, inf the top loss), upper bound."""
        return _plain(self.renyi_bounds(alpha).hi)

    def renyi_bounds(self, alpha: Any) -> Interval:
        """Proven interval for `renyi(alpha)`."""
        from residua.pld.curve.renyi import renyi_bounds

        orders = checks.array_satisfying("alpha", alpha, lambda v: v > 0, "positive")
        return renyi_bounds(self, orders)

    # -- finite PLDs ------------------------------------------------------------------

    @remembered_property
    def _atoms(self) -> Atoms:
        from residua.pld.discretise.finite import listed_atoms

        return listed_atoms(self)

    def pair(self) -> tuple[Floats, Floats]:
        """A pair `(P, Q)` with this PLD: its atoms and their Esscher tilt, `±inf` last.

        Only for finite PLDs; masses are rounded to the nearest float.
        """
        self._require_finite("pair")
        atoms = self._atoms
        plus, minus = float(atoms.mass_at_infinity), float(atoms.mass_at_minus_infinity)
        p = np.concatenate([atoms.p, [plus] * (plus > 0), [0.0] * (minus > 0)])
        q = np.concatenate([atoms.q, [0.0] * (plus > 0), [minus] * (minus > 0)])
        return p, q

    def _require_finite(self, what: str) -> None:
        if not self.is_finite:
            raise ArgumentError(f"{what} needs a finite PLD, got {self!r}")


def composition(parts: Iterable[Pld]) -> Pld:
    """Compose many losses, in pairs: a long sum would copy what it has at every step."""
    todo = list(parts)
    while len(todo) > 1:
        todo = [sum(todo[i + 1 : i + 2], todo[i]) for i in range(0, len(todo), 2)]
    return todo[0] if todo else Pld(None, {})


def query(name: str, value: Any) -> Pld:
    """Check that an argument is a PLD."""
    if not isinstance(value, Pld):
        raise ArgumentTypeError(f"{name} must be a Pld, got {checks.shown(value)}")
    return value


def _accuracy(accuracy: float | None) -> float:
    return ACCURACY if accuracy is None else checks.between("accuracy", accuracy, 1e-9, 1.0)


def _plain(value: Number) -> Number:
    return float(value) if np.ndim(value) == 0 else value


def _gaussian_repr(sensitivity: float, sigma: float) -> str:
    if sigma == 1.0:
        return f"gaussian(mu={sensitivity!r})"
    if sensitivity == 1.0:
        return f"gaussian(sigma={sigma!r})"
    return f"gaussian(sigma={sigma!r}, sensitivity={sensitivity!r})"


def _missing(masses: list[tuple[Fraction, int]]) -> Interval:
    """`1 - Π (1 - m)^n`: exact in rationals while that is cheap, then in decimals.

    Far more digits than a float has: what a given delta leaves beside this mass may be
    a small difference of the two.
    """
    kept = survival(masses)
    slack = Fraction(0)
    if kept is None:
        largest = max(m for m, _ in masses)
        digits = 50 + len(str(largest.denominator // largest.numerator))
        product = Decimal(1)
        with localcontext(Context(prec=digits)):
            for m, n in masses:
                product *= (Decimal(m.denominator - m.numerator) / m.denominator) ** n
        # A quotient is off by a unit in the last place and counts up to 2^53 times; a power and a
        # product by one each. (Where the exponent underflows, the product is below the slack.)
        kept, slack = Fraction(product), Fraction(len(masses), 10 ** (digits - 18))
    return Interval(
        max(0.0, float_down(1 - min(kept + slack, Fraction(1)))),
        float_up(1 - max(kept - slack, Fraction(0))),
    )

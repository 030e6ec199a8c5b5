"""From the recorded description of a mechanism to its loss, by the verifier's own formulas.

One direction is derived (`remove`, or `replace`, which dominates both orders): the other is its
reversal, and every check that is not symmetric by itself looks at both. What has no formula here
raises `Unknown`, and the step stays undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from residua.verify.arithmetic import exact, written
from residua.verify.descriptions.configurations import UNREADABLE, Tables
from residua.verify.descriptions.fields import Fields, read
from residua.verify.losses.factors import (
    CutOff,
    DiscreteGaussian,
    Factor,
    Geometric,
    Loss,
    Mixture,
    Noise,
    Pairs,
    Response,
    Revealed,
    Stated,
    Unknown,
    together,
)
from residua.verify.losses.pairs import (
    Categories,
    Drawn,
    Sampled,
    from_atoms,
    from_tradeoff,
    symmetric_hull,
)

_REPLACE = "replace-one"


@dataclass(frozen=True)
class StepQuery:
    """The query of a step, and the tables of the states before and after it."""

    mechanism: Any
    relation: str | None
    before: Tables
    after: Tables

    @property
    def loss(self) -> Loss:
        return loss_of(self.mechanism, self.relation)


def loss_of(description: Any, relation: str | None) -> Loss:
    """The loss of a described mechanism under a neighbouring relation (add-remove unless named)."""
    return _loss(read(description), relation or "add-remove")


def _loss(fields: Fields, relation: str) -> Loss:
    """The same of a description that was read."""
    kind = fields["kind"]
    declared = fields.get("relation")
    if declared is not None and declared != relation:
        raise Unknown(f"{kind} is declared for {declared}, the budget is for {relation}")
    try:
        return _KINDS[kind](fields, relation)
    except UNREADABLE as error:
        raise Unknown(f"{kind} cannot be read: {error!r}") from None


def units_of(description: Any) -> list[str]:
    """The units that a described mechanism and its parts declare; a filter in it has none."""
    found, waiting = [], [description]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            if isinstance(part.get("unit"), str):
                found.append(part["unit"])
            if part.get("kind") != "commit" or isinstance(part.get("to"), list):
                waiting += part.values()
    return found


def _one(factor: Factor) -> Loss:
    return Loss(factors=((factor, 1),))


def response(eps: Any, delta: Any = 0) -> Loss:
    """`R_{eps,delta}` of numbers in a record."""
    e, d = exact(eps), exact(delta)
    if not (e >= 0 and 0 <= d < 1):
        raise ValueError(f"eps {eps!r}, delta {delta!r}")
    pure = _one(Response(e, written(eps))) if e else Loss()
    return pure + _one(Revealed(d, written(delta))) if d else pure


def _gaussian(f: Fields, _relation: str) -> Loss:
    return Loss(variance=(written(f["sensitivity"]) / written(f["sigma"])) ** 2)


def _laplace(f: Fields, _relation: str) -> Loss:
    scale, size = exact(f["scale"]), exact(f["sensitivity"])
    if size == 0:
        return Loss()
    return _one(Noise(size / scale, written(f["sensitivity"]) / written(f["scale"])))


def _discrete_laplace(f: Fields, _relation: str) -> Loss:
    scale, k = exact(f["scale"]), f["sensitivity"]
    if k == 1:
        return _one(Response(1 / scale, _as_written(1 / scale)))
    return _one(Geometric(scale, k, k / written(f["scale"]))) if k > 0 else Loss()


def _as_written(value: Fraction) -> Fraction:
    """The decimal of a ratio that is a float: ratios are worked out, not written."""
    return written(float(value)) if Fraction(float(value)) == value else value


def _discrete_gaussian(f: Fields, _relation: str) -> Loss:
    k, rho = f["sensitivity"], (f["sensitivity"] / written(f["sigma"])) ** 2 / 2
    return _one(DiscreteGaussian(exact(f["sigma"]), k, rho)) if k > 0 else Loss()


def _truncated_laplace(f: Fields, _relation: str) -> Loss:
    b, a = exact(f["scale"]), exact(f["bound"])
    d = exact(f["sensitivity"])
    if d == 0:
        return Loss()
    if d >= 2 * a:
        raise Unknown("noise that is cut off this far reveals everything")
    lost = CutOff(a / b, d / b)
    if d >= a:
        core = Noise((2 * a - d) / b, None, Fraction(0))
    else:
        core = Noise(d / b, None, (a - d) / b)
    return Loss(factors=((lost, 1), (core, 1)))


def _randomized_response(f: Fields, relation: str) -> Loss:
    if relation == "add-remove":
        raise Unknown("randomized response has no pair under add-remove")
    k = f["num_buckets"]
    if "noise_parameter" in f:
        share = exact(f["noise_parameter"])
        other = share / k
        masses = [1 - (k - 1) * other, other, other * (k - 2)]
        return _finite(Pairs(tuple(masses), (masses[1], masses[0], masses[2])), relation)
    if k == 2:
        return response(f["eps"])
    return _one(Categories(exact(f["eps"]), k)) if f["eps"] else Loss()


def _exponential(f: Fields, relation: str) -> Loss:
    halved = f["monotonic"] and relation != _REPLACE
    e = exact(f["eps"]) / (1 + halved)
    return _one(Noise(e, written(float(e)), Fraction(0))) if e else Loss()


def _noisy_max(f: Fields, relation: str) -> Loss:
    times = 1 if f["monotonic"] and relation != _REPLACE else 2
    scale, size = exact(f["scale"]), exact(f["sensitivity"])
    e = times * size / scale
    if e == 0:
        return Loss()
    if f["noise"] == "gumbel":
        return _one(Noise(e, _as_written(e), Fraction(0)))
    return _one(Response(e, _as_written(e)))


def _subsampled(f: Fields, relation: str) -> Loss:
    rate, size = exact(f["sampling_rate"]), exact(f["sensitivity"])
    shift = size / exact(f["sigma"])
    if rate == 0 or shift == 0:
        return Loss()
    if rate == 1:
        # Twice a float is one, and written as such.
        size = f["sensitivity"] * (2.0 if relation == _REPLACE else 1.0)
        return _gaussian({"sigma": f["sigma"], "sensitivity": size}, relation)
    hidden = (Fraction(0), 1 - rate)
    under = (hidden, (-shift, rate)) if relation == _REPLACE else ((Fraction(0), Fraction(1)),)
    return _one(Mixture((hidden, (shift, rate)), under))


def _mixture(f: Fields, relation: str) -> Loss:
    if relation == _REPLACE:
        raise Unknown("a mixture of Gaussians has no pair under replace-one")
    weights: dict[float, Fraction] = {}
    for shift, weight in zip(f["sensitivities"], f["probabilities"], strict=True):
        if weight:
            weights[shift] = weights.get(shift, Fraction(0)) + exact(weight)
    largest = max(weights)
    if len(weights) == 1:
        return _gaussian({"sigma": f["sigma"], "sensitivity": largest}, relation)
    sigma = exact(f["sigma"])
    others = [(exact(at) / sigma, weights[at]) for at in sorted(weights) if at != largest]
    rest = 1 - sum((w for _, w in others), Fraction(0))
    shifts = (*others, (exact(largest) / sigma, rest))
    return _one(Mixture(shifts, ((Fraction(0), Fraction(1)),)))


def _poisson(f: Fields, relation: str) -> Loss:
    inner, rate = f["mechanism"], exact(f["sampling_rate"])
    if inner["kind"] == "gaussian":
        return _subsampled({**inner, "sampling_rate": f["sampling_rate"]}, relation)
    if relation == _REPLACE:
        raise Unknown("no formula for a Poisson sample under replace-one")
    return _sample(f, relation, rate, Sampled)


def _without_replacement(f: Fields, relation: str) -> Loss:
    if relation != _REPLACE:
        raise Unknown("a sample of fixed size has a pair under replace-one only")
    return _sample(f, relation, Fraction(f["sample_size"], f["source_size"]), Drawn)


def _sample(
    f: Fields, relation: str, rate: Fraction, sampled: Callable[[Factor, Fraction], Factor]
) -> Loss:
    """The loss of a sample at this rate of a single factor."""
    whole = _loss(f["mechanism"], relation)
    if rate == 0 or whole.is_identity:
        return Loss()
    if rate == 1:
        return whole
    if whole.variance or whole.stated or len(whole.factors) != 1 or whole.factors[0][1] != 1:
        raise Unknown("no formula for a sample of a composition")
    return _one(sampled(whole.factors[0][0], rate))


def _zcdp(f: Fields, _relation: str) -> Loss:
    rho, xi = f["rho"], f["xi"]
    # Approximate zCDP: everything is revealed with probability delta.
    if rho == 0.0:
        # At every order at most xi: that is pure DP.
        return response(xi, f["delta"])
    return Loss(stated=((Stated(written(rho), written(xi)), 1),)) + response(0.0, f["delta"])


def _rdp(f: Fields, _relation: str) -> Loss:
    if 0.0 in f["epsilons"]:
        return Loss()
    pairs = zip(f["orders"], f["epsilons"], strict=True)
    curve = tuple((written(a), written(e)) for a, e in pairs)
    return Loss(stated=((Stated(None, Fraction(0), curve), 1),))


def _from_atoms(f: Fields, relation: str) -> Loss:
    pairs = from_atoms(f["losses"], f["masses"], f["mass_at_infinity"])
    if pairs is None:
        raise Unknown("masses times e^-loss are too close to the middle of two floats")
    return _finite(pairs, relation)


def _from_tradeoff(f: Fields, relation: str) -> Loss:
    alphas, betas = ([exact(each) for each in f[name]] for name in ("alphas", "betas"))
    return _finite(from_tradeoff(alphas, betas), relation)


def _finite(pairs: Pairs, relation: str) -> Loss:
    """A loss with rational masses; none where both distributions are the same."""
    if relation == _REPLACE and not pairs.symmetric:
        pairs = symmetric_hull(pairs)
    seen = [(p, q) for p, q in zip(pairs.p, pairs.q, strict=True) if p and q]
    over, under = (sum((each[side] for each in seen), Fraction(0)) for side in (0, 1))
    if over == under and all(p == q for p, q in seen):
        # Everything or nothing.
        return _one(Revealed(1 - over, _as_written(1 - over))) if over < 1 else Loss()
    return _one(pairs)


_KINDS: dict[str, Callable[[Fields, str], Loss]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "discrete_gaussian": _discrete_gaussian,
    "discrete_laplace": _discrete_laplace,
    "truncated_laplace": _truncated_laplace,
    "randomized_response": _randomized_response,
    "exponential_mechanism": _exponential,
    "report_noisy_max": _noisy_max,
    "subsampled_gaussian": _subsampled,
    "mixture_of_gaussians": _mixture,
    "poisson_sampled": _poisson,
    "sampled_without_replacement": _without_replacement,
    "pure_dp": lambda f, _: response(f["eps"]),
    "approximate_dp": lambda f, _: response(f["eps"], f["delta"]),
    "gdp": lambda f, _: Loss(variance=written(f["mu"]) ** 2),
    "zcdp": _zcdp,
    "rdp": _rdp,
    "from_atoms": _from_atoms,
    "from_tradeoff": _from_tradeoff,
    "composed": lambda f, relation: together(_loss(part, relation) for part in f["mechanisms"]),
    "self_composed": lambda f, relation: _loss(f["mechanism"], relation).times(f["count"]),
}

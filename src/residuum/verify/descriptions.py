"""From the recorded description of a mechanism to its loss, by the verifier's own formulas.

One direction is derived (`remove`, or `replace`, which dominates both orders): the other is its
reversal, and every check that is not symmetric by itself looks at both. What has no formula here
raises `Underivable`, and the step stays undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from residuum.verify.balls import exact, written
from residuum.verify.effort import work
from residuum.verify.factors import (
    CutOff,
    DiscreteGaussian,
    Factor,
    Geometric,
    Given,
    Loss,
    Mixture,
    Noise,
    Pairs,
    Response,
    Stated,
    together,
)
from residuum.verify.pairs import Categories, rationals, sampled, symmetrised, without_replacement
from residuum.verify.states import UNREADABLE

Fields = Mapping[str, Any]
_DEEPEST = 40
_REPLACE = "replace-one"
_SUM = Fraction(1, 10**6)


class Underivable(Exception):
    """The loss of a description cannot be derived; the message says why."""


def loss_of(description: Any, relation: str | None, depth: int = 0) -> Loss:
    """The loss of a described mechanism under a neighbouring relation."""
    if not isinstance(description, Mapping) or depth > _DEEPEST:
        raise Underivable("the mechanism is not a JSON object of ordinary depth")
    work(20)
    fields = dict(description)
    kind = fields.pop("kind", None)
    steps = fields.pop("steps", 1)
    if fields.pop("version", 1) != 1:
        raise Underivable(f"{kind} has a version this verifier does not know")
    make = _KINDS.get(kind) if isinstance(kind, str) else None
    if make is None:
        raise Underivable(f"no formula for the kind {kind!r}")
    if type(steps) is not int or steps < 0:
        raise Underivable(f"steps must be a count, got {steps!r}")
    declared = fields.pop("relation", None)
    if declared is not None and relation is not None and declared != relation:
        raise Underivable(f"{kind} is declared for {declared}, the budget is for {relation}")
    unit = fields.pop("unit", None)
    if unit is not None and not isinstance(unit, str):
        raise Underivable(f"{kind} declares a unit that is no text, {unit!r}")
    try:
        return make(fields, relation or "add-remove", depth).times(steps)
    except UNREADABLE as error:
        raise Underivable(f"{kind} with {sorted(fields)} cannot be read: {error!r}") from None


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
    """`R_{eps,delta}` of numbers that stand in a record."""
    e, d = exact(eps), exact(delta)
    if not (e >= 0 and 0 <= d < 1):
        raise ValueError(f"eps {eps!r}, delta {delta!r}")
    return Loss() if e == 0 and d == 0 else _one(Response(e, d, written(eps), written(delta)))


def _positive(value: Any) -> Fraction:
    number = exact(value)
    if not number > 0:
        raise ValueError(f"{value!r} is not positive")
    return number


def _size(value: Any) -> Fraction:
    number = exact(value)
    if number < 0:
        raise ValueError(f"{value!r} is negative")
    return number


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _gaussian(f: Fields, relation: str, depth: int) -> Loss:
    _positive(f["sigma"])
    _size(f.get("sensitivity", 1.0))
    return Loss(variance=(written(f.get("sensitivity", 1.0)) / written(f["sigma"])) ** 2)


def _gdp(f: Fields, relation: str, depth: int) -> Loss:
    _size(f["mu"])
    return Loss(variance=written(f["mu"]) ** 2)


def _laplace(f: Fields, relation: str, depth: int) -> Loss:
    scale, size = _positive(f["scale"]), _size(f.get("sensitivity", 1.0))
    if size == 0:
        return Loss()
    return _one(Noise(size / scale, written(f.get("sensitivity", 1.0)) / written(f["scale"])))


def _discrete_laplace(f: Fields, relation: str, depth: int) -> Loss:
    scale, k = _positive(f["scale"]), _whole(f.get("sensitivity", 1))
    if k == 1:
        e, zero = 1 / scale, Fraction(0)
        return _one(Response(e, zero, written(float(e)) if Fraction(float(e)) == e else e, zero))
    return _one(Geometric(scale, k)) if k > 0 else Loss()


def _discrete_gaussian(f: Fields, relation: str, depth: int) -> Loss:
    sigma, k = _positive(f["sigma"]), _whole(f.get("sensitivity", 1))
    return _one(DiscreteGaussian(sigma, k)) if k > 0 else Loss()


def _truncated_laplace(f: Fields, relation: str, depth: int) -> Loss:
    b, a = _positive(f["scale"]), _positive(f["bound"])
    d = _size(f.get("sensitivity", 1.0))
    if d == 0:
        return Loss()
    if d >= 2 * a:
        raise Underivable("noise that is cut off this far reveals everything")
    lost = CutOff(a / b, d / b)
    if d >= a:
        core = Noise((2 * a - d) / b, None, Fraction(0))
    else:
        core = Noise(d / b, None, (a - d) / b)
    return Loss(factors=((lost, 1), (core, 1)))


def _randomized_response(f: Fields, relation: str, depth: int) -> Loss:
    if relation == "add-remove":
        raise Underivable("randomized response has no pair under add-remove")
    k = _whole(f.get("num_buckets", 2))
    if k < 2:
        raise ValueError(f"{k} buckets")
    if "noise_parameter" in f:
        share = _size(f["noise_parameter"])
        if share > 1:
            raise ValueError(f"noise_parameter {share}")
        other = share / k
        masses = [1 - (k - 1) * other, other, other * (k - 2)]
        return _one(Pairs(tuple(masses), (masses[1], masses[0], masses[2])))
    if k == 2:
        return response(f["eps"])
    return _one(Categories(_size(f["eps"]), k)) if f["eps"] else Loss()


def _exponential(f: Fields, relation: str, depth: int) -> Loss:
    halved = _flag(f.get("monotonic", False)) and relation != _REPLACE
    e = _size(f["eps"]) / (1 + halved)
    return _one(Noise(e, written(float(e)), Fraction(0))) if e else Loss()


def _noisy_max(f: Fields, relation: str, depth: int) -> Loss:
    times = 1 if _flag(f.get("monotonic", False)) and relation != _REPLACE else 2
    scale, size = _positive(f["scale"]), _size(f.get("sensitivity", 1.0))
    e = times * size / scale
    if e == 0:
        return Loss()
    # A ratio is worked out, not written.
    top = written(float(e)) if Fraction(float(e)) == e else e
    noise = f.get("noise", "laplace")
    if noise not in ("laplace", "exponential", "gumbel"):
        raise ValueError(f"noise {noise!r}")
    if noise == "gumbel":
        return _one(Noise(e, top, Fraction(0)))
    return _one(Response(e, Fraction(0), top, Fraction(0)))


def _subsampled(f: Fields, relation: str, depth: int) -> Loss:
    rate, size = exact(f["sampling_rate"]), _size(f.get("sensitivity", 1.0))
    shift = size / _positive(f["sigma"])
    if not 0 <= rate <= 1:
        raise ValueError(f"sampling_rate {rate}")
    if rate == 0 or shift == 0:
        return Loss()
    if rate == 1:
        times = 2 if relation == _REPLACE else 1
        mu = times * written(f.get("sensitivity", 1.0)) / written(f["sigma"])
        return Loss(variance=mu**2)
    hidden = (Fraction(0), 1 - rate)
    under = (hidden, (-shift, rate)) if relation == _REPLACE else ((Fraction(0), Fraction(1)),)
    return _one(Mixture((hidden, (shift, rate)), under))


def _mixture(f: Fields, relation: str, depth: int) -> Loss:
    if relation == _REPLACE:
        raise Underivable("a mixture of Gaussians has no pair under replace-one")
    sigma = _positive(f["sigma"])
    weights: dict[Fraction, Fraction] = {}
    for shift, weight in zip(f["sensitivities"], f["probabilities"], strict=True):
        at = _size(shift) / sigma
        weights[at] = weights.get(at, Fraction(0)) + _size(weight)
    if abs(sum(weights.values(), Fraction(-1))) > _SUM:
        raise ValueError("probabilities must sum to 1")
    shifts = sorted(at for at in weights if weights[at] > 0)
    others = [(at, weights[at]) for at in shifts[:-1]]
    rest = 1 - sum((w for _, w in others), Fraction(0))
    if rest <= 0 or shifts[-1] == 0:
        raise ValueError("probabilities must sum to 1")
    return _one(Mixture((*others, (shifts[-1], rest)), ((Fraction(0), Fraction(1)),)))


def _poisson(f: Fields, relation: str, depth: int) -> Loss:
    inner, rate = f["mechanism"], exact(f["sampling_rate"])
    if not 0 <= rate <= 1:
        raise ValueError(f"sampling_rate {rate}")
    if inner.get("kind") == "gaussian" and "steps" not in inner:
        again = {"sigma": inner["sigma"], "sensitivity": inner.get("sensitivity", 1.0)}
        return _subsampled({**again, "sampling_rate": f["sampling_rate"]}, relation, depth)
    if relation == _REPLACE:
        raise Underivable("no formula for a Poisson sample under replace-one")
    whole = loss_of(inner, relation, depth + 1)
    if rate == 0 or whole.is_identity:
        return Loss()
    if rate == 1:
        return whole
    return _one(sampled(_as_pairs(whole), rate))


def _without_replacement(f: Fields, relation: str, depth: int) -> Loss:
    if relation != _REPLACE:
        raise Underivable("a sample of fixed size has a pair under replace-one only")
    rate = Fraction(_whole(f["sample_size"]), _whole(f["source_size"]))
    if not 0 <= rate <= 1:
        raise ValueError(f"a sample of {rate} of all")
    whole = loss_of(f["mechanism"], relation, depth + 1)
    if rate == 0 or whole.is_identity:
        return Loss()
    if rate == 1:
        return whole
    return _one(without_replacement(_as_pairs(whole), rate))


def _as_pairs(loss: Loss) -> Factor:
    """A single factor whose law is finite, to be sampled."""
    if loss.variance or loss.stated or len(loss.factors) != 1 or loss.factors[0][1] != 1:
        raise Underivable("no formula for a sample of a composition")
    return loss.factors[0][0]


def _pure_dp(f: Fields, relation: str, depth: int) -> Loss:
    return response(f["eps"])


def _approximate_dp(f: Fields, relation: str, depth: int) -> Loss:
    return response(f["eps"], f["delta"])


def _zcdp(f: Fields, relation: str, depth: int) -> Loss:
    rho, xi, delta = f["rho"], f.get("xi", 0.0), f.get("delta", 0.0)
    # Approximate zCDP: everything is revealed with probability delta.
    revealed = response(0.0, delta)
    if _size(rho) + _size(xi) == 0:
        return revealed
    return Loss(stated=((Stated(written(rho), written(xi)), 1),)) + revealed


def _rdp(f: Fields, relation: str, depth: int) -> Loss:
    pairs = list(zip(f["orders"], f["epsilons"], strict=True))
    if not pairs or not all(written(a) > 1 and written(e) >= 0 for a, e in pairs):
        raise ValueError("orders must exceed 1, epsilons not be negative")
    curve = tuple((written(a), written(e)) for a, e in pairs)
    return Loss(stated=((Stated(None, Fraction(0), curve), 1),))


def _from_atoms(f: Fields, relation: str, depth: int) -> Loss:
    lost = _size(f.get("mass_at_infinity", 0.0))
    if lost > 1:
        raise ValueError(f"mass_at_infinity {lost}")
    merged: dict[Fraction, Fraction] = {}
    for z, p in zip(f["losses"], f["masses"], strict=True):
        if p:
            merged[exact(z)] = merged.get(exact(z), Fraction(0)) + _positive(p)
    if lost == 0 and list(merged) == [0]:
        return Loss()
    if relation == _REPLACE:
        raise Underivable("no formula for given atoms under replace-one")
    return _one(Given(tuple(merged), tuple(merged.values()), lost))


def _from_tradeoff(f: Fields, relation: str, depth: int) -> Loss:
    alphas, betas = ([exact(each) for each in f[name]] for name in ("alphas", "betas"))
    if len(alphas) != len(betas) or not all(0 <= each <= 1 for each in (*alphas, *betas)):
        raise ValueError("alphas and betas must be as many, in [0, 1]")
    if min(alphas) != 0 or min(betas) != 0:
        raise ValueError("the curve must go from alpha = 0 to beta = 0")
    made = rationals(alphas, betas)
    if relation == _REPLACE and not made.symmetric:
        made = symmetrised(made)
    return _one(made)


def _composed(f: Fields, relation: str, depth: int) -> Loss:
    return together(loss_of(part, relation, depth + 1) for part in f["mechanisms"])


def _self_composed(f: Fields, relation: str, depth: int) -> Loss:
    count = f["count"]
    if type(count) is not int or count < 0:
        raise ValueError(f"count {count!r}")
    return loss_of(f["mechanism"], relation, depth + 1).times(count)


_KINDS: dict[str, Callable[[Fields, str, int], Loss]] = {
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
    "pure_dp": _pure_dp,
    "approximate_dp": _approximate_dp,
    "gdp": _gdp,
    "zcdp": _zcdp,
    "rdp": _rdp,
    "from_atoms": _from_atoms,
    "from_tradeoff": _from_tradeoff,
    "composed": _composed,
    "self_composed": _self_composed,
}

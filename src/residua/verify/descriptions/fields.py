"""Descriptions of mechanisms, read strictly: the fields of each kind, their types and ranges.

What the library refuses must not be proven here. So a description has exactly the fields of its
kind, every number is within the range that the constructor of the kind accepts, and lists obey the
same rules (masses that sum to 1, curves that are convex). `read` returns the full form, in which
every field is present and every real number is a float, or raises `Malformed`.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from residua.sizes import DEEPEST, LARGEST_COUNT, oversized
from residua.verify.arithmetic import work
from residua.verify.losses.factors import Unknown
from residua.verify.losses.pairs import upper_hull

RELATIONS = ("add-remove", "replace-one", "zero-out")
Fields = Mapping[str, Any]
Check = Callable[[Any], Any]

_SUM = 1e-9
"""How far from 1 masses may sum, and how far a tradeoff curve may bend the wrong way."""
_TILT = Fraction(1, 10**12)
"""How far above 1 `E e^-Z` may be."""
_SLIVER = Fraction(2, 10**15)
"""How close to such a bound nothing is read: the library decides it in floats, which may differ."""
_BLACK_BOXES = ("zcdp", "rdp", "from_atoms", "from_tradeoff")


class Malformed(Unknown):
    """A description that the library would not read; the message says why."""


def read(description: Any) -> dict[str, Any]:
    """The full form of a description."""
    too_large = oversized(description)
    if too_large is not None:
        raise Malformed(f"the mechanism is too large: {too_large}")
    return _read(description, 1)


def is_label(value: Any) -> bool:
    """Whether this is a name: a line of printable text in composed form (NFC)."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= 200
        and value.isprintable()
        and value.strip() == value
        and unicodedata.is_normalized("NFC", value)
    )


def undeclared(description: Any) -> str | None:
    """The kind of a part that is known by a bound alone and declares no relation, if there is one.

    Bounds that denote a symmetric loss hold under any relation: they need not declare one.
    """
    waiting = [description]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            if part.get("kind") in _BLACK_BOXES and part.get("relation") is None:
                return str(part["kind"])
            inner = part.get("to") if part.get("kind") == "commit" else None
            # What a filter that is committed to is planned for was not run.
            waiting += inner if isinstance(inner, list) else []
            waiting += [part[name] for name in ("mechanism", "mechanisms") if name in part]
    return None


def _read(given: Any, depth: int) -> dict[str, Any]:
    """The full form of a description that is nested so deep in others."""
    if not isinstance(given, Mapping):
        raise Malformed(f"a mechanism must be a JSON object, got {given!r:.60}")
    work(20)
    fields = dict(given)
    kind = fields.pop("kind", None)
    rule = _RULES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        raise Malformed(f"no formula for the kind {kind!r:.60}")
    version = fields.pop("version", 1)
    if type(version) is not int or version != 1:
        raise Malformed(f"{kind} has the version {version!r:.60}, which is not known here")
    steps = fields.pop("steps", None)
    unknown = sorted(str(name) for name in fields.keys() - rule.fields.keys())
    if unknown:
        raise Malformed(f"{kind} has the unknown field {unknown[0]!r:.60}")
    if "steps" in given and (type(steps) is not int or not 0 <= steps <= LARGEST_COUNT):
        raise Malformed(f"steps of {kind} must be a count of at most 2**53, got {steps!r:.60}")
    depth += "steps" in given
    if depth > DEEPEST:
        raise Malformed(f"mechanisms are nested more than {DEEPEST} deep")
    made: dict[str, Any] = {"kind": kind}
    for name, (check, default) in rule.fields.items():
        # Null says that an optional field is absent, to the library too.
        if name not in fields or (default is None and fields[name] is None):
            if default is _REQUIRED:
                raise Malformed(f"{kind} lacks the field {name!r}")
            if default is not None:
                made[name] = default
            continue
        value = fields[name]
        if check is _mechanism:
            made[name] = _read(value, depth + 1)
        elif check is _mechanisms and isinstance(value, list) and value:
            made[name] = [_read(part, depth + 1) for part in value]
        else:
            made[name] = check(value)
        if made[name] is None:
            raise Malformed(f"{name} of {kind} cannot be {value!r:.60}")
    wrong = None if rule.whole is None else rule.whole(made)
    if wrong is not None:
        raise Malformed(f"{kind}: {wrong}")
    if "steps" in given:
        return {"kind": "self_composed", "count": steps, "mechanism": made}
    return made


# -- single fields ------------------------------------------------------------------------------

# Each check returns the value in its full form, or None where the value is not fit.


def _real(low: float = -math.inf, high: float = math.inf) -> Check:
    def check(value: Any) -> float | None:
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            return None
        number = float(value) + 0.0
        return number if low <= number <= high else None

    return check


def _whole(low: int, high: float) -> Check:
    return lambda value: value if type(value) is int and low <= value <= high else None


def _one_of(*values: Any) -> Check:
    alike = [(type(value), value) for value in values]
    return lambda value: value if (type(value), value) in alike else None


def _label(value: Any) -> str | None:
    return str(value) if is_label(value) else None


def _list(each: Check) -> Check:
    def check(value: Any) -> list[Any] | None:
        if not isinstance(value, list) or not value:
            return None
        work(len(value))
        made = [each(item) for item in value]
        return None if None in made else made

    return check


_positive = _real(math.ulp(0.0))
_size = _real(0.0)
_share = _real(0.0, 1.0)
_count = _whole(0, LARGEST_COUNT)
_flag = _one_of(False, True)
_mechanism, _mechanisms = _one_of(), _one_of()
"""A description in a description, and a list of them, which `_read` reads itself."""


# -- rules that several fields obey together ----------------------------------------------------


def _as_long(one: str, two: str) -> Callable[[Fields], str | None]:
    def check(f: Fields) -> str | None:
        return None if len(f[one]) == len(f[two]) else f"{one} and {two} must be of one length"

    return check


def _response(f: Fields) -> str | None:
    if ("eps" in f) == ("noise_parameter" in f):
        return "takes either eps or noise_parameter"
    return None


def _sample(f: Fields) -> str | None:
    if f["sample_size"] > f["source_size"]:
        return "sample_size must be at most source_size"
    return None


def _sums_to_one(name: str, total: float) -> str | None:
    return None if abs(total - 1.0) <= _SUM else f"{name} must sum to 1, got {total!r}"


def _weights(f: Fields) -> str | None:
    wrong = _as_long("sensitivities", "probabilities")(f)
    wrong = wrong or _sums_to_one("probabilities", math.fsum(f["probabilities"]))
    if wrong is not None:
        return wrong
    merged: dict[float, Fraction] = {}
    for at, weight in zip(f["sensitivities"], f["probabilities"], strict=True):
        if weight > 0.0:
            merged[at] = merged.get(at, Fraction(0)) + Fraction(weight)
    others = sum((weight for at, weight in merged.items() if at != max(merged)), Fraction(0))
    return None if others < 1 else "the largest sensitivity must have some probability"


def _atoms(f: Fields) -> str | None:
    """The losses and masses of a PLD: `E e^-Z` at most 1, and no mass that a float cannot carry."""
    wrong = _as_long("losses", "masses")(f)
    wrong = wrong or _sums_to_one("masses", math.fsum(f["masses"]) + f["mass_at_infinity"])
    if wrong is not None:
        return wrong
    work(8 * len(f["losses"]))
    kept = [(z, p) for z, p in zip(f["losses"], f["masses"], strict=True) if p > 0.0]
    if not kept or f["mass_at_infinity"] == 1.0:
        return None
    # Larger gains than that no mass of a float makes up for, and larger losses leave no mass.
    if any(abs(z) > 700.0 for z, _ in kept):
        return "losses must be within 700 of 0 where there is mass"
    tilted = [p * math.exp(-z) for z, p in kept]
    if min(*tilted, *(p for _, p in kept)) < 2.0**-1000 * (1.0 + 1e-9):
        return "masses, and masses times e^-loss, must be 0 or at least 2**-1000"
    above = Fraction(math.fsum(tilted)) - 1
    if above > _TILT - _SLIVER or abs(abs(above) - _TILT) < _SLIVER:
        return f"E e^-Z must be at most 1, and clearly so or not, got 1 + {float(above)!r}"
    return None


def _tradeoff(f: Fields) -> str | None:
    """From `alpha = 0` to `beta = 0`, below `1 - alpha`, falling and convex."""
    wrong = _as_long("alphas", "betas")(f)
    if wrong is not None:
        return wrong
    work(16 * len(f["alphas"]))
    pairs = sorted(zip(f["alphas"], f["betas"], strict=True), key=lambda pair: (pair[0], -pair[1]))
    points = [(Fraction(a), Fraction(b)) for a, b in pairs]
    off = Fraction(_SUM) - _SLIVER
    if points[0][0] != 0 or points[-1][1] != 0:
        return "the curve must go from alpha = 0 to beta = 0"
    if any(a + b - 1 > off for a, b in points):
        return "betas must be at most 1 - alphas"
    if any(two[1] - one[1] > off for one, two in pairwise(points)):
        return "betas must fall"
    return None if _is_convex(points, off) else "betas must be convex in alphas"


def _is_convex(points: list[tuple[Fraction, Fraction]], off: Fraction) -> bool:
    """Whether no point is further than `off` from the lower hull, along alpha."""
    # As tails of both distributions, where the curve has reached 0 by the first such point alone.
    first = max(1 - a for a, b in points if b == 0)
    tails = [(Fraction(0), first), *((b, 1 - a) for a, b in points if b > 0)]
    tails = sorted([*tails, (points[0][1], Fraction(1))])
    hull = upper_hull(tails)
    at = 0
    for q, p in tails:
        while at + 1 < len(hull) and hull[at + 1][0] < q:
            at += 1
        left, right = hull[at], hull[min(at + 1, len(hull) - 1)]
        if right[0] > left[0]:
            top = left[1] + (right[1] - left[1]) * (q - left[0]) / (right[0] - left[0])
        else:
            top = left[1]
        if top - p > off:
            return False
    return True


# -- kinds --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """The fields of a kind, each with its check and default, and what they obey together."""

    fields: Mapping[str, tuple[Check, Any]]
    whole: Callable[[Fields], str | None] | None = None


_REQUIRED = object()
_NOISE = {"sensitivity": (_size, 1.0)}
_INTEGER_NOISE = {"sensitivity": (_whole(0, 10**400), 1)}
_DECLARED: dict[str, tuple[Check, Any]] = {
    "relation": (_one_of(*RELATIONS), None),
    "unit": (_label, None),
}


def _needed(**checks: Check) -> dict[str, tuple[Check, Any]]:
    return {name: (check, _REQUIRED) for name, check in checks.items()}


_RULES: dict[str, _Rule] = {
    "gaussian": _Rule(_needed(sigma=_positive) | _NOISE),
    "laplace": _Rule(_needed(scale=_positive) | _NOISE),
    "discrete_gaussian": _Rule(_needed(sigma=_positive) | _INTEGER_NOISE),
    "discrete_laplace": _Rule(_needed(scale=_positive) | _INTEGER_NOISE),
    "truncated_laplace": _Rule(_needed(scale=_positive, bound=_positive) | _NOISE),
    "randomized_response": _Rule(
        {
            "eps": (_size, None),
            "num_buckets": (_whole(2, LARGEST_COUNT), 2),
            "noise_parameter": (_share, None),
        },
        _response,
    ),
    "exponential_mechanism": _Rule(_needed(eps=_size) | {"monotonic": (_flag, False)}),
    "report_noisy_max": _Rule(
        _needed(scale=_positive)
        | {"noise": (_one_of("gumbel", "exponential", "laplace"), "laplace")}
        | _NOISE
        | {"monotonic": (_flag, False)}
    ),
    "subsampled_gaussian": _Rule(_needed(sigma=_positive, sampling_rate=_share) | _NOISE),
    "mixture_of_gaussians": _Rule(
        _needed(sigma=_positive, sensitivities=_list(_size), probabilities=_list(_share)), _weights
    ),
    "poisson_sampled": _Rule(_needed(mechanism=_mechanism, sampling_rate=_share)),
    "sampled_without_replacement": _Rule(
        _needed(
            mechanism=_mechanism, source_size=_whole(1, 10**400), sample_size=_whole(0, 10**400)
        ),
        _sample,
    ),
    "pure_dp": _Rule(_needed(eps=_size) | _DECLARED),
    "approximate_dp": _Rule(_needed(eps=_size, delta=_share) | _DECLARED),
    "gdp": _Rule(_needed(mu=_size) | _DECLARED),
    "zcdp": _Rule(_needed(rho=_size) | {"xi": (_size, 0.0), "delta": (_share, 0.0)} | _DECLARED),
    "rdp": _Rule(
        _needed(orders=_list(_real(1.0 + 1e-9, 1e9)), epsilons=_list(_real(0.0, 1e6))) | _DECLARED,
        _as_long("orders", "epsilons"),
    ),
    "from_atoms": _Rule(
        _needed(losses=_list(_real()), masses=_list(_size))
        | {"mass_at_infinity": (_share, 0.0)}
        | _DECLARED,
        _atoms,
    ),
    "from_tradeoff": _Rule(
        _needed(alphas=_list(_share), betas=_list(_share)) | _DECLARED, _tradeoff
    ),
    "composed": _Rule(_needed(mechanisms=_mechanisms)),
    "self_composed": _Rule(_needed(mechanism=_mechanism, count=_count)),
}
KINDS = tuple(_RULES)

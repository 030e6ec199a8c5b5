"""The attack suite: every filter we ship against small catalogues, and rules that must fall.

A filter survives if its exact worst case is below its own guarantee, for every catalogue. A check
that cannot fail is worth nothing, so the suite also holds rules that are known not to keep what
they promise, and these must be caught with an adversary in hand.

Catalogues are finite and rational, so that survival is proven to the last digit, but for
`responses` (irrational masses) and `smooth` (continuous losses), which are rounded both ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from residua import checks
from residua.adversary.attack import Attack, attack_filter
from residua.adversary.unsound.demonstrations import UNSOUND as UNSOUND
from residua.errors import ArgumentError
from residua.filters.base import Filter
from residua.filters.codec import KINDS, from_dict
from residua.pld.constructors import (
    approximate_dp,
    from_exact,
    from_pair,
    gaussian,
    laplace,
    pure_dp,
)
from residua.pld.discretise.finite import written_out
from residua.pld.pld import Pld

ROUNDS = 3
"""Against finite catalogues; two against the others."""
SUITE_ACCURACY = 0.05
"""Of continuous losses, in `eps`, and of their compositions: rough, so that these stay small."""
_MENU = ({"kind": "pure_dp", "eps": 0.25}, {"kind": "pure_dp", "eps": 0.5})
_COMPONENTS = (
    {"kind": "pure", "eps": 1.1},
    {"kind": "basic", "eps": 0.6, "delta": 0.06},
    {"kind": "renyi", "alpha": 4.0, "rho": 0.3},
)

EXAMPLES: dict[str, dict[str, Any]] = {
    "pure": {"eps": 1.1},
    "basic": {"eps": 1.1, "delta": 0.06},
    "renyi": {"alpha": 4.0, "rho": 0.6},
    "renyi_curve": {"curve": [[2.0, 0.4], [8.0, 0.7]]},
    "zcdp": {"rho": 0.25},
    "approximate_zcdp": {"eps": 1.5, "delta": 0.06, "delta_conversion": 0.03},
    "gdp": {"mu": 1.0},
    "gdp_residue": {"mu": 1.0},
    "approximate_gdp_residue": {"mu": 1.0, "delta": 0.06},
    "target_residue": {"eps": 1.1, "delta": 0.06},
    "plan": {"eps": 1.1, "delta": 0.06, "plan": list(_MENU)},
    "menu": {"eps": 1.1, "delta": 0.06, "menu": list(_MENU)},
    "renyi_commit": {"eps": 1.5, "delta": 0.06},
    "auto": {"eps": 1.5, "delta": 0.06},
    "union": {"eps": 1.1, "filters": list(_COMPONENTS)},
    "natural": {"budget": {"kind": "approximate_dp", "eps": 1.0, "delta": 0.05}, "rounds": 3},
    "additive_profile": {"eps": 1.0, "delta": 0.05, "rounds": 3},
}
"""A filter of each kind, small enough for a few queries to use it up."""


def example(kind: str) -> Filter:
    """The filter of a kind that the suite attacks."""
    if kind not in EXAMPLES or kind not in KINDS:
        raise ArgumentError(
            f"kind must be one of {', '.join(sorted(KINDS))}, got {checks.shown(kind)}"
            f"{checks.near(kind, KINDS)}"
        )
    return from_dict({"kind": kind, **EXAMPLES[kind]})


@cache
def catalogues() -> dict[str, tuple[Pld, ...]]:
    """The queries that filters are attacked with."""
    half, quarter = _response(3, 5), _response(7, 9)
    asymmetric = from_pair([0.5, 0.5], [0.25, 0.75])
    leaning = from_pair([0.5, 0.5, 0.0], [0.5, 0.46875, 0.03125])
    return {
        "pure": (half, quarter),
        "approximate": (
            from_pair([1 / 64, 37 / 64, 26 / 64, 0.0], [0.0, 26 / 64, 37 / 64, 1 / 64]),
            approximate_dp(0.0, 1 / 32),
        ),
        "asymmetric": (asymmetric, asymmetric.reverse()),
        "minus infinity": (leaning, leaning.reverse()),
        "gaussian-like": (_binomial(4), quarter),
        "responses": (pure_dp(0.5), approximate_dp(0.25, 0.01)),
        "smooth": (gaussian(mu=0.5), laplace(scale=2.0)),
    }


def _response(low: int, high: int) -> Pld:
    total = float(low + high)
    return from_pair([low / total, high / total], [high / total, low / total])


def _binomial(n: int) -> Pld:
    """`n` small responses written out as one query: losses spread like those of a Gaussian."""
    return from_exact(written_out(n * _response(15, 17)).exact)


def survivors(kinds: tuple[str, ...] | None = None) -> Iterator[tuple[str, str, Attack]]:
    """Attack every filter with every catalogue."""
    for kind in kinds if kinds is not None else tuple(KINDS):
        filter = example(kind)
        for name, queries in catalogues().items():
            finite = all(query.is_finite for query in queries)
            found = attack_filter(
                filter,
                queries,
                ROUNDS if finite else 2,
                accuracy=SUITE_ACCURACY,
                coarse=None if finite else SUITE_ACCURACY,
            )
            yield kind, name, found
